// Threads of the CPU that answer the same protocol: what the tasks are compared with.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "net/socket.hpp"
#include "server.hpp"

namespace grosr::store {
namespace {

std::string_view view_of(const word& key) {
  return {reinterpret_cast<const char*>(key.at), key.bytes};
}

/// Hash maps with a lock each.
class shards {
 public:
  template <class Found>
  bool look(const word& key, const Found& found) {
    shard& s = of(key);
    const std::lock_guard lock(s.lock);
    const auto at = s.items.find(view_of(key));
    if (at == s.items.end()) return false;
    const value& v = at->second;
    found(v.flags, reinterpret_cast<const unsigned char*>(v.bytes.data()),
          static_cast<std::uint32_t>(v.bytes.size()));
    return true;
  }

  void set(const word& key, std::uint32_t flags, const unsigned char* bytes, std::uint32_t n) {
    shard& s = of(key);
    const std::lock_guard lock(s.lock);
    auto at = s.items.find(view_of(key));
    if (at == s.items.end()) at = s.items.emplace(view_of(key), value{}).first;
    at->second.flags = flags;
    at->second.bytes.assign(reinterpret_cast<const char*>(bytes), n);
  }

  bool erase(const word& key) {
    shard& s = of(key);
    const std::lock_guard lock(s.lock);
    const auto at = s.items.find(view_of(key));
    if (at == s.items.end()) return false;
    s.items.erase(at);
    return true;
  }

  std::uint64_t size() const {
    std::uint64_t n = 0;
    for (const auto& s : all_) n += s.items.size();
    return n;
  }

 private:
  struct value {
    std::uint32_t flags = 0;
    std::string bytes;
  };
  struct hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view key) const {
      return std::hash<std::string_view>{}(key);
    }
  };
  struct alignas(64) shard {
    std::mutex lock;
    std::unordered_map<std::string, value, hash, std::equal_to<>> items;
  };
  shard& of(const word& key) { return all_[hash{}(view_of(key)) >> 7 & (all_.size() - 1)]; }
  std::array<shard, 256> all_;
};

struct cpu_table {
  shards* all;
  template <class Found>
  bool look(alone, const word& key, const Found& found) const {
    return all->look(key, found);
  }
  stored set(alone, const word& key, std::uint32_t flags, const unsigned char* value,
             std::uint32_t bytes) const {
    all->set(key, flags, value, bytes);
    return stored::yes;
  }
  bool erase(alone, const word& key) const { return all->erase(key); }
};

using protocol = session<alone, cpu_table>;

struct connection {
  connection(int fd, shards& table, std::uint32_t longest_value)
      : socket(fd),
        memory(buffers::in_bytes(longest_value) + buffers::out_bytes(longest_value)),
        state({}, {&table},
              {memory.data(), memory.data() + buffers::in_bytes(longest_value), longest_value}) {}
  tool::descriptor socket;
  std::vector<unsigned char> memory;
  protocol state;
};

bool send_all(int fd, const unsigned char* from, std::size_t bytes) {
  while (bytes != 0) {
    const ssize_t n = ::send(fd, from, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EAGAIN) {
      pollfd p{fd, POLLOUT, 0};
      if (::poll(&p, 1, 1000) <= 0) return false;
      continue;
    }
    if (n < 0) return false;
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

/// Answers what came. False when the connection has ended.
bool serve(connection& c) {
  const ssize_t n = ::recv(c.socket.fd(), c.state.room(), c.state.room_bytes(), 0);
  if (n < 0 && errno == EAGAIN) return true;
  if (n <= 0) return false;
  c.state.received(static_cast<std::uint32_t>(n));
  for (;;) {
    const protocol::next next = c.state.step();
    if (c.state.answer_bytes() != 0 &&
        !send_all(c.socket.fd(), c.state.answer(), c.state.answer_bytes()))
      return false;
    c.state.sent();
    if (next == protocol::next::close) return false;
    if (next == protocol::next::receive) return true;
  }
}

class on_cpu : public server {
 public:
  explicit on_cpu(const server_options& o)
      : options_(o), listener_(tool::open_sockets(SOCK_STREAM, options_.name, 1)) {
    for (unsigned t = 0; t < o.threads; ++t) {
      epolls_.emplace_back(::epoll_create1(EPOLL_CLOEXEC));
      if (epolls_.back().fd() < 0)
        throw std::system_error(errno, std::generic_category(), "epoll_create1");
    }
    for (const tool::descriptor& own : epolls_)
      threads_.emplace_back([this, fd = own.fd()] { work(fd); });
    threads_.emplace_back([this] { accept(); });
  }
  ~on_cpu() override { join(); }

  sockaddr_in name() const override { return options_.name; }
  void check() override {
    if (const int problem = problem_.load())
      throw std::system_error(problem, std::generic_category(),
                              "a connection could not be accepted; see ulimit -n");
  }
  totals stop() override {
    join();
    while (!connections_.empty()) end(*connections_.begin()->first);
    return all_;
  }
  std::uint64_t items() override { return table_.size(); }

 private:
  void join() {
    ends_ = true;
    for (auto& t : threads_)
      if (t.joinable()) t.join();
  }

  /// Deals connections out to the threads.
  void accept() {
    for (std::size_t turn = 0; !ends_;) {
      pollfd p{listener_[0].fd(), POLLIN, 0};
      if (::poll(&p, 1, 50) <= 0) continue;
      const int fd = ::accept4(listener_[0].fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
        problem_ = errno;
        listener_.clear();  // ends the connections that wait: clients learn of it
        return;
      }
      auto made = std::make_unique<connection>(fd, table_, options_.longest_value);
      epoll_event e{EPOLLIN, {.ptr = made.get()}};
      const int to = epolls_[turn++ % (threads_.size() - 1)].fd();
      const std::lock_guard lock(lock_);
      connections_.emplace(made.get(), std::move(made));
      ::epoll_ctl(to, EPOLL_CTL_ADD, fd, &e);
    }
  }

  void work(int epoll) {
    std::array<epoll_event, 64> events;
    while (!ends_.load(std::memory_order_relaxed)) {
      const int n = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 50);
      for (int i = 0; i < n; ++i) {
        auto* c = static_cast<connection*>(events[static_cast<std::size_t>(i)].data.ptr);
        if (!serve(*c)) end(*c);
      }
    }
  }

  void end(connection& c) {
    const std::lock_guard lock(lock_);
    const totals& t = c.state.counts();
    ++all_.connections;
    all_.gets += t.gets;
    all_.hits += t.hits;
    all_.sets += t.sets;
    all_.deletes += t.deletes;
    all_.refused += t.refused;
    connections_.erase(&c);
  }

  server_options options_;
  std::vector<tool::descriptor> listener_, epolls_;
  shards table_;
  std::atomic<bool> ends_{false};
  std::atomic<int> problem_{0};  // why no connection is accepted any more: an errno
  std::mutex lock_;
  totals all_;
  std::unordered_map<connection*, std::unique_ptr<connection>> connections_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<server> serve_on_cpu(const server_options& o) {
  return std::make_unique<on_cpu>(o);
}

}  // namespace grosr::store
