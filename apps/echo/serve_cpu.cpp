// Threads of the CPU that answer: what the kernel is compared with.
#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "net/socket.hpp"
#include "server.hpp"
#include "sum.hpp"

namespace grosr::echo {
namespace {

struct thread_end {
  std::vector<std::thread>& threads;
  std::atomic<bool>& ends;
  ~thread_end() {
    ends = true;
    for (auto& t : threads)
      if (t.joinable()) t.join();
  }
};

class on_cpu : public server {
 public:
  on_cpu(const server_options& o, unsigned batch)
      : options_(o), sockets_(tool::open_sockets(SOCK_DGRAM, options_.name, o.sockets)) {
    const timeval look{0, 50'000};  // at ends_
    for (const auto& s : sockets_)
      ::setsockopt(s.fd(), SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    for (unsigned t = 0; t < o.threads; ++t) {
      const int socket = sockets_[t % sockets_.size()].fd();
      threads_.emplace_back([this, socket, batch] {
        totals mine;
        if (batch <= 1)
          one_by_one(socket, mine);
        else
          in_batches(socket, batch, mine);
        add(mine);
      });
    }
  }

  sockaddr_in name() const override { return options_.name; }
  void check() override {}

  totals stop() override {
    thread_end{threads_, ends_};
    return all_;
  }

 private:
  void one_by_one(int socket, totals& mine) const {
    std::vector<std::uint32_t> place(options_.bytes / 4 + 1);
    auto* text = reinterpret_cast<unsigned char*>(place.data());
    while (!ends_.load(std::memory_order_relaxed)) {
      sockaddr_in from{};
      socklen_t length = sizeof from;
      auto* at = reinterpret_cast<sockaddr*>(&from);
      const ssize_t n = ::recvfrom(socket, text, options_.bytes, MSG_TRUNC, at, &length);
      if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) ++mine.failed;
        continue;
      }
      if (n > static_cast<ssize_t>(options_.bytes)) {
        ++mine.too_long;
        continue;
      }
      const auto got = static_cast<std::size_t>(n);
      mine.sum += sum_of_bytes(text, got, 0, 1);
      answered(::sendto(socket, text, got, 0, at, length) == n, got, mine);
    }
  }

  void in_batches(int socket, unsigned batch, totals& mine) const {
    const std::size_t words = options_.bytes / 4 + 1;
    std::vector<std::uint32_t> place(batch * words);
    std::vector<sockaddr_in> from(batch);
    std::vector<iovec> parts(batch);
    std::vector<mmsghdr> in(batch), out(batch);
    while (!ends_.load(std::memory_order_relaxed)) {
      for (unsigned i = 0; i < batch; ++i) {
        parts[i] = {&place[i * words], options_.bytes};
        in[i] = {};
        in[i].msg_hdr.msg_name = &from[i];
        in[i].msg_hdr.msg_namelen = sizeof from[i];
        in[i].msg_hdr.msg_iov = &parts[i];
        in[i].msg_hdr.msg_iovlen = 1;
      }
      const int got = ::recvmmsg(socket, in.data(), batch, MSG_WAITFORONE | MSG_TRUNC, nullptr);
      if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) ++mine.failed;
        continue;
      }
      unsigned going = 0;
      for (unsigned i = 0; i < static_cast<unsigned>(got); ++i) {
        const std::size_t bytes = in[i].msg_len;
        if (bytes > options_.bytes) {
          ++mine.too_long;
          continue;
        }
        mine.sum += sum_of_bytes(static_cast<unsigned char*>(parts[i].iov_base), bytes, 0, 1);
        parts[i].iov_len = bytes;
        out[going] = in[i];
        out[going++].msg_hdr.msg_flags = 0;
      }
      for (unsigned sent = 0; sent < going;) {
        const int n = ::sendmmsg(socket, &out[sent], going - sent, 0);
        if (n <= 0) {
          ++mine.failed;
          ++sent;
          continue;
        }
        for (int k = 0; k < n; ++k, ++sent)
          answered(true, out[sent].msg_hdr.msg_iov->iov_len, mine);
      }
    }
  }

  static void answered(bool well, std::size_t bytes, totals& mine) {
    if (!well) {
      ++mine.failed;
      return;
    }
    ++mine.datagrams;
    mine.bytes += bytes;
  }

  void add(const totals& t) {
    const std::lock_guard lock(lock_);
    all_.datagrams += t.datagrams;
    all_.bytes += t.bytes;
    all_.sum += t.sum;
    all_.too_long += t.too_long;
    all_.failed += t.failed;
  }

  server_options options_;
  std::vector<tool::descriptor> sockets_;
  std::atomic<bool> ends_{false};
  std::mutex lock_;
  totals all_;
  std::vector<std::thread> threads_;
  thread_end end_{threads_, ends_};  // before anything that threads use goes
};

}  // namespace

std::unique_ptr<server> serve_on_cpu(const server_options& o, unsigned batch) {
  return std::make_unique<on_cpu>(o, batch);
}

}  // namespace grosr::echo
