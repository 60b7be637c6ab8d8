// The kernel that answers.
#include <sys/socket.h>

#include <algorithm>
#include <memory>

#include "grosr/simt/launch.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"
#include "net/open_sockets.hpp"
#include "server.hpp"
#include "sum.hpp"

namespace grosr::echo {
namespace {

template <sys::granularity Who>
struct answer {
  sys::server_ref sys;
  const int* sockets;
  std::uint32_t socket_count;
  unsigned char* buffers;
  std::uint32_t bytes, stride;
  int flags;
  totals* all;
  std::uint32_t* arrived;  // blocks that have begun

  GROSR_DEVICE auto caller() const {
    if constexpr (Who == sys::granularity::warp)
      return sys.warp();
    else
      return sys.block();
  }

  /// An SM's calls go to one service thread, so each of these has a socket nearly to itself: the
  /// same for SMs that differ by the number of sockets, a power of two or not. But each socket has
  /// somebody.
  GROSR_DEVICE std::uint32_t choose_socket() const {
    struct choice {
      std::uint32_t socket;
    };
    choice& mine = simt::block_shared<choice>();
    if (simt::thread_id() == 0) {
      const std::uint32_t turn =
          simt::atomic_ref<std::uint32_t>(*arrived).fetch_add(1, simt::relaxed);
      mine.socket = (turn < socket_count ? turn : simt::sm_id()) % socket_count;
    }
    simt::sync_block();
    return mine.socket;
  }

  GROSR_DEVICE void operator()() const {
    const auto c = caller();
    const unsigned size = Who == sys::granularity::warp ? simt::warp_size : simt::block_size();
    const unsigned rank = simt::thread_id() % size;
    const std::uint32_t group = (simt::block_id() * simt::block_size() + simt::thread_id()) / size;
    const int socket = sockets[choose_socket()];
    unsigned char* const text = buffers + std::size_t{group} * stride;
    totals mine;
    for (unsigned turn = 0;;) {
      sockaddr_in from{};
      socklen_t length = sizeof from;
      const long n = sys::recvfrom(c, socket, text, bytes, MSG_TRUNC | flags, &from, &length);
      if (n == -ESHUTDOWN) break;
      if (n < 0) {
        if (n != -EAGAIN) ++mine.failed;
        simt::pause(turn++, "a datagram");
        continue;
      }
      turn = 0;
      if (n > static_cast<long>(bytes)) {  // what was cut off is lost
        ++mine.too_long;
        continue;
      }
      const auto got = static_cast<std::size_t>(n);
      mine.sum += sum_of_bytes(text, got, rank, size);
      const long sent = sys::sendto(c, socket, text, got, 0, &from, length);
      if (sent == -ESHUTDOWN) break;
      if (sent == n) {
        ++mine.datagrams;
        mine.bytes += got;
      } else {
        ++mine.failed;
      }
    }
    const auto add = [](std::uint64_t& to, std::uint64_t n) {
      simt::atomic_ref<std::uint64_t>(to).fetch_add(n, simt::relaxed);
    };
    add(all->sum, mine.sum);
    if (rank != 0) return;
    add(all->datagrams, mine.datagrams);
    add(all->bytes, mine.bytes);
    add(all->too_long, mine.too_long);
    add(all->failed, mine.failed);
  }
};

sys::options options_of(const server_options& o) {
  sys::options s;
  s.threads = o.threads;
  s.policy.network = true;
  return s;
}

class on_device : public server {
 public:
  on_device(const device& d, const server_options& o, const kernel_options& k)
      : name_(o.name),
        calls_(d, options_of(o)),
        sockets_(tool::open_sockets_on(d, calls_, SOCK_DGRAM, name_, o.sockets)),
        all_(d, simt::space::device, 1),
        arrived_(d, simt::space::device, 1),
        stream_(d) {
    calls_.coalesce(k.batch != 0 ? k.batch : usual_batch, {});
    const unsigned groups = std::max(k.groups != 0 ? k.groups : usual_groups(d), o.sockets);
    const std::uint32_t stride = (o.bytes + 255) / 256 * 256;
    buffers_ = simt::buffer<unsigned char>(d, simt::space::device, std::size_t{groups} * stride);
    const auto start = [&](auto kernel, unsigned threads) {
      simt::launch(stream_, {groups, threads}, kernel);
    };
    const int flags = k.polls ? MSG_DONTWAIT : 0;
    if (k.who == sys::granularity::warp)
      start(
          answer<sys::granularity::warp>{calls_.ref(), sockets_.data(), o.sockets, buffers_.data(),
                                         o.bytes, stride, flags, all_.data(), arrived_.data()},
          simt::warp_size);
    else
      start(
          answer<sys::granularity::block>{calls_.ref(), sockets_.data(), o.sockets, buffers_.data(),
                                          o.bytes, stride, flags, all_.data(), arrived_.data()},
          block_threads);
  }

  ~on_device() override { calls_.stop(); }  // else the kernel would never end

  sockaddr_in name() const override { return name_; }
  void check() override { stream_.done(); }

  totals stop() override {
    calls_.stop();
    stream_.wait();
    totals t;
    all_.copy_to({&t, 1});
    return t;
  }

  tool::calls_made calls() const override { return tool::calls_made(calls_.statistics()); }

 private:
  static constexpr unsigned block_threads = 128;
  static constexpr unsigned usual_batch = 8;

  sockaddr_in name_;
  simt::buffer<unsigned char> buffers_;
  sys::server calls_;
  simt::buffer<int> sockets_;
  simt::buffer<totals> all_;
  simt::buffer<std::uint32_t> arrived_;
  simt::stream stream_;
};

}  // namespace

unsigned usual_groups(const device& d) { return d.is_cuda() ? 128 : 8; }

std::unique_ptr<server> serve_on(const device& d, const server_options& o,
                                 const kernel_options& k) {
  // Loaded now: later a service that rests would hold it up.
  simt::fit<1024, 1, answer<sys::granularity::warp>>(d, simt::warp_size);
  simt::fit<1024, 1, answer<sys::granularity::block>>(d, simt::warp_size);
  return std::make_unique<on_device>(d, o, k);
}

}  // namespace grosr::echo
