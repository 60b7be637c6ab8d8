#include "drive.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "net/socket.hpp"
#include "net/thread_team.hpp"

namespace grosr::echo {
namespace {

using tool::clock;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now().time_since_epoch())
          .count());
}

// The head of a datagram; what follows is the place's own, and never changes.
struct head {
  std::uint64_t sent_ns;
  std::uint32_t number;  // of its socket's
  std::uint32_t place;   // in the socket's window
};
static_assert(sizeof(head) == least_bytes);

struct place {
  std::uint64_t sent_ns = 0;
  std::uint32_t number = 0;
  bool under_way = false;
};

class client_socket {
 public:
  client_socket(const drive_options& o, std::uint32_t key)
      : bytes_(o.bytes),
        lost_after_ns_(o.lost_after_ms * 1'000'000ull),
        socket_(tool::connect_to(SOCK_DGRAM, o.server)),
        places_(o.window),
        out_(std::size_t{o.window} * o.bytes),
        in_(std::size_t{o.window} * (o.bytes + 1)),
        out_parts_(o.window),
        in_parts_(o.window),
        sends_(o.window),
        takes_(o.window) {
    std::uint32_t x = key * 2654435761u + 1;
    for (auto& b : out_) {
      x = x * 1664525 + 1013904223;
      b = static_cast<unsigned char>(x >> 24);
    }
    for (std::size_t i = 0; i < places_.size(); ++i) {
      in_parts_[i] = {&in_[i * (bytes_ + 1)], bytes_ + 1};  // one too long would be seen
      takes_[i].msg_hdr.msg_iov = &in_parts_[i];
      takes_[i].msg_hdr.msg_iovlen = 1;
      sends_[i].msg_hdr.msg_iov = &out_parts_[i];
      sends_[i].msg_hdr.msg_iovlen = 1;
    }
  }

  int fd() const { return socket_.fd(); }

  /// Takes the echoes that are there. How many.
  unsigned take(tool::thread_team::tally& counts, std::vector<double>& round_trips) {
    const int n = ::recvmmsg(fd(), takes_.data(), static_cast<unsigned>(takes_.size()),
                             MSG_DONTWAIT, nullptr);
    if (n < 0) {
      if (errno == ECONNREFUSED)
        throw std::runtime_error("nobody answers there; is the server running?");
      return 0;
    }
    const std::uint64_t now = now_ns();
    for (int i = 0; i < n; ++i)
      look_at(takes_[static_cast<std::size_t>(i)], now, counts, round_trips);
    return static_cast<unsigned>(n);
  }

  /// Sends what the window has room for; what was not back for long is lost.
  void fill(std::uint64_t now, std::uint64_t& lost) {
    unsigned going = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      place& p = places_[i];
      if (p.under_way) {
        if (now - p.sent_ns < lost_after_ns_) continue;
        ++lost;
      }
      p = {now, ++number_, true};
      const head h{now, p.number, static_cast<std::uint32_t>(i)};
      std::memcpy(&out_[i * bytes_], &h, sizeof h);
      out_parts_[going++] = {&out_[i * bytes_], bytes_};
    }
    for (unsigned sent = 0; sent < going;) {
      const int n = ::sendmmsg(fd(), &sends_[sent], going - sent, 0);
      if (n > 0)
        sent += static_cast<unsigned>(n);
      else if (errno != ECONNREFUSED && errno != EINTR && errno != EAGAIN && errno != ENOBUFS)
        throw std::runtime_error(fmt::format("a datagram of {} bytes cannot be sent ({})", bytes_,
                                             std::strerror(errno)));
      else
        break;  // lost
    }
  }

 private:
  void look_at(const mmsghdr& m, std::uint64_t now, tool::thread_team::tally& counts,
               std::vector<double>& round_trips) {
    const auto* text = static_cast<const unsigned char*>(m.msg_hdr.msg_iov->iov_base);
    head h{};
    std::memcpy(&h, text, sizeof h);
    if (m.msg_len != bytes_ || h.place >= places_.size() || h.number > number_) {
      // Or it is for who had this port before.
      if (m.msg_len != bytes_ || h.sent_ns >= began_ns_) counts.add(counts.failed, 1);
      return;
    }
    place& p = places_[h.place];
    if (!p.under_way || p.number != h.number) return;  // late: its place was given away
    p.under_way = false;
    if (h.sent_ns != p.sent_ns ||
        (h.number % 64 == 0 && std::memcmp(text + sizeof h, &out_[h.place * bytes_ + sizeof h],
                                           bytes_ - sizeof h) != 0)) {
      counts.add(counts.failed, 1);
      return;
    }
    if (h.number % 16 == 0 && round_trips.size() < 100'000)
      round_trips.push_back(static_cast<double>(now - h.sent_ns) / 1e3);
    counts.add(counts.done, 1);
  }

  std::size_t bytes_;
  std::uint64_t began_ns_ = now_ns(), lost_after_ns_;
  tool::descriptor socket_;
  std::vector<place> places_;
  std::vector<unsigned char> out_, in_;
  std::vector<iovec> out_parts_, in_parts_;
  std::vector<mmsghdr> sends_, takes_;
  std::uint32_t number_ = 0;
};

}  // namespace

driven drive(const drive_options& o) {
  driven d;
  std::mutex lock;
  std::vector<double> round_trips;
  {
    tool::thread_team clients(o.clients, [&](unsigned member, const std::atomic<bool>& ends,
                                             tool::thread_team::tally& counts) {
      std::vector<client_socket> sockets;
      std::vector<pollfd> waits;
      for (unsigned i = 0; i < o.sockets; ++i) {
        sockets.emplace_back(o, member * o.sockets + i);
        waits.push_back({sockets.back().fd(), POLLIN, 0});
      }
      std::vector<double> mine;
      std::uint64_t lost = 0;
      for (auto& s : sockets) s.fill(now_ns(), lost);
      while (!ends.load(std::memory_order_relaxed)) {
        unsigned got = 0;
        for (auto& s : sockets) {
          const unsigned n = s.take(counts, mine);
          if (n != 0) s.fill(now_ns(), lost);
          got += n;
        }
        if (got != 0) continue;
        if (::poll(waits.data(), waits.size(), 10) == 0)
          for (auto& s : sockets) s.fill(now_ns(), lost);
      }
      const std::lock_guard guard(lock);
      d.lost += lost;
      round_trips.insert(round_trips.end(), mine.begin(), mine.end());
    });
    const auto f = clients.measure(std::min(0.2, o.seconds / 4), o.seconds);
    clients.end();
    d.seconds = f.seconds;
    d.echoed = f.done;
    d.wrong = f.failed;
    d.client_cpu_s = f.own_cpu_s;
    d.others_cpu_s = f.others_cpu_s;
  }
  d.round_trip = tool::samples(std::move(round_trips));
  return d;
}

}  // namespace grosr::echo
