#include "drive.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>

#include "cli/text.hpp"
#include "net/socket.hpp"
#include "net/thread_team.hpp"

namespace grosr::store {
namespace {

using tool::clock;

std::string key_of(std::uint32_t number) { return fmt::format("key:{:08}", number); }

/// A key's value: its own, whoever sets it.
std::string value_of(std::uint32_t number, std::uint32_t bytes) {
  std::string v(bytes, ' ');
  std::uint32_t x = number * 2654435761u + 1;
  for (char& c : v) {
    x = x * 1664525 + 1013904223;
    c = static_cast<char>(x >> 24);
  }
  return v;
}

/// What clients say and hear, made before anything is counted.
struct texts {
  explicit texts(const drive_options& o) {
    for (std::uint32_t k = 0; k < o.keys; ++k) {
      const std::string key = key_of(k), value = value_of(k, o.bytes);
      gets.push_back(fmt::format("get {}\r\n", key));
      sets.push_back(fmt::format("set {} 7 0 {}\r\n{}\r\n", key, o.bytes, value));
      hits.push_back(fmt::format("VALUE {} 7 {}\r\n{}\r\nEND\r\n", key, o.bytes, value));
    }
  }
  std::vector<std::string> gets, sets, hits;
};

constexpr std::string_view miss = "END\r\n", stored_text = "STORED\r\n";

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0)
      throw std::runtime_error(
          fmt::format("the server ended a connection ({})", std::strerror(errno)));
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

// One connection: some requests at a time, and what is to come back.
class client {
 public:
  explicit client(const drive_options& o) : socket_(tool::connect_to(SOCK_STREAM, o.server)) {}
  int fd() const { return socket_.fd(); }

  void ask(std::string_view request, std::string_view answer, bool may_miss) {
    requests_ += request;
    expected_.push_back({answer, may_miss});
  }
  void send() {
    sent_ = clock::now();
    send_all(fd(), requests_);
    requests_.clear();
  }
  bool all_answered() const { return first_ == expected_.size(); }
  double waited_us() const { return tool::microseconds_since(sent_); }

  /// Takes what has come. How many answers were completed by it.
  unsigned take(bool waits, tool::thread_team::tally& counts) {
    const std::size_t had = in_.size();
    in_.resize(had + room);
    const ssize_t n = ::recv(fd(), in_.data() + had, room, waits ? 0 : MSG_DONTWAIT);
    in_.resize(had + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0) throw std::runtime_error("the server ended a connection with requests under way");
    unsigned done = 0;
    std::string_view rest = in_;
    while (first_ < expected_.size()) {
      const auto& e = expected_[first_];
      const bool missed = e.may_miss && rest.starts_with(miss);
      const std::string_view answer = missed ? miss : e.answer;
      if (rest.size() < answer.size() && answer.starts_with(rest)) break;  // more will come
      if (!rest.starts_with(answer))
        throw std::runtime_error(fmt::format("a wrong answer: \"{}\" came where \"{}\" was to come",
                                             tool::one_line(rest.substr(0, 60)),
                                             tool::one_line(answer.substr(0, 60))));
      if (missed) counts.add(counts.failed, 1);
      rest.remove_prefix(answer.size());
      ++first_;
      ++done;
    }
    in_.erase(0, in_.size() - rest.size());
    if (all_answered()) {
      if (!in_.empty()) throw std::runtime_error("an answer came that nobody asked for");
      expected_.clear();
      first_ = 0;
    }
    return done;
  }

 private:
  static constexpr std::size_t room = 16384;
  struct answer_to_come {
    std::string_view answer;
    bool may_miss;
  };
  tool::descriptor socket_;
  std::string requests_, in_;
  std::vector<answer_to_come> expected_;
  std::size_t first_ = 0;
  clock::time_point sent_;
};

void set_all(const drive_options& o, const texts& t) {
  client c(o);
  tool::thread_team::tally none;
  constexpr std::uint32_t at_once = 32;
  for (std::uint32_t k = 0; k < o.keys; k += at_once) {
    for (std::uint32_t i = k; i < std::min(o.keys, k + at_once); ++i)
      c.ask(t.sets[i], stored_text, false);
    c.send();
    while (!c.all_answered()) c.take(true, none);
  }
}

void be_client(const drive_options& o, const texts& t, unsigned member,
               const std::atomic<bool>& ends, tool::thread_team::tally& counts,
               std::vector<double>& round_trips) {
  std::vector<client> clients;
  std::vector<pollfd> waits;
  for (unsigned i = 0; i < o.connections; ++i) {
    clients.emplace_back(o);
    waits.push_back({clients.back().fd(), POLLIN, 0});
  }
  std::uint64_t x = member * 0x9e3779b97f4a7c15ull + 1;
  const auto next = [&] {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return static_cast<std::uint32_t>(x >> 32);
  };
  const auto ask = [&](client& c) {
    for (unsigned i = 0; i < o.pipeline; ++i) {
      const std::uint32_t k = next() % o.keys;
      if (next() % 100 < o.set_percent)
        c.ask(t.sets[k], stored_text, false);
      else
        c.ask(t.gets[k], t.hits[k], true);
    }
    c.send();
  };
  for (auto& c : clients) ask(c);
  while (!ends.load(std::memory_order_relaxed)) {
    unsigned got = 0;
    for (auto& c : clients) {
      const unsigned n = c.take(false, counts);
      counts.add(counts.done, n);
      got += n;
      if (!c.all_answered()) continue;
      if (round_trips.size() < 100'000) round_trips.push_back(c.waited_us());
      ask(c);
    }
    if (got == 0) ::poll(waits.data(), waits.size(), 10);
  }
}

}  // namespace

driven drive(const drive_options& o) {
  const texts t(o);
  set_all(o, t);
  driven d;
  std::mutex lock;
  std::vector<double> round_trips;
  {
    tool::thread_team clients(o.clients, [&](unsigned member, const std::atomic<bool>& ends,
                                             tool::thread_team::tally& counts) {
      std::vector<double> mine;
      be_client(o, t, member, ends, counts, mine);
      const std::lock_guard guard(lock);
      round_trips.insert(round_trips.end(), mine.begin(), mine.end());
    });
    const auto f = clients.measure(std::min(0.2, o.seconds / 4), o.seconds);
    clients.end();
    d.seconds = f.seconds;
    d.answered = f.done;
    d.misses = f.failed;
    d.client_cpu_s = f.own_cpu_s;
    d.others_cpu_s = f.others_cpu_s;
  }
  d.round_trip = tool::samples(std::move(round_trips));
  return d;
}

}  // namespace grosr::store
