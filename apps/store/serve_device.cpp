// The tasks that answer: each takes a connection, answers its requests until it ends, and starts
// the next task.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "device_table.hpp"
#include "grosr/alloc/heap.hpp"
#include "grosr/run/runtime.hpp"
#include "net/open_sockets.hpp"
#include "server.hpp"

namespace grosr::store {
namespace {

struct answering {
  sys::server_ref sys;
  const int* listener;
  device_table table;
  unsigned char* memory;  // bytes_a_worker() for each
  std::uint32_t longest_value, looks;
  std::uint64_t idle_ns;
  totals* all;

  GROSR_DEVICE std::uint32_t bytes_a_worker() const {
    return buffers::in_bytes(longest_value) + buffers::out_bytes(longest_value);
  }

  /// As recv(); the first looks do not wait.
  GROSR_DEVICE long receive(int peer, void* to, std::uint32_t bytes) const {
    const auto c = sys.warp();
    for (std::uint32_t i = 0; i < looks; ++i) {
      const long n = sys::recv(c, peer, to, bytes, MSG_DONTWAIT);
      if (n != -EAGAIN) return n;
    }
    return sys::recv(c, peer, to, bytes);
  }

  /// Bounds its waits, and notices a peer that has gone without a word.
  GROSR_DEVICE void prepare(int peer) const {
    const timeval limit{static_cast<time_t>(idle_ns / 1'000'000'000),
                        static_cast<suseconds_t>(idle_ns % 1'000'000'000 / 1000)};
    const int on = 1;
    sys::setsockopt(sys.warp(), peer, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sys::setsockopt(sys.warp(), peer, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sys::setsockopt(sys.warp(), peer, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }

  /// Whether somebody waits for a warp. The same for all lanes.
  GROSR_DEVICE bool others_wait() const {
    pollfd p{*listener, POLLIN, 0};
    return sys::poll(sys.warp(), &p, 1, 0) > 0;
  }

  GROSR_DEVICE static std::uint64_t now() {
    return simt::shuffle(simt::full_mask, simt::clock_ns(), 0);
  }

  /// 0, or why not all of it was sent.
  GROSR_DEVICE long send_all(int peer, const unsigned char* from, std::uint32_t bytes) const {
    for (std::uint32_t sent = 0; sent < bytes;) {
      const long n = sys::send(sys.warp(), peer, from + sent, bytes - sent);
      if (n > 0) sent += static_cast<std::uint32_t>(n);
      if (sent == bytes) break;
      if (n < 0 && n != -EAGAIN) return n;
      if (others_wait()) return -ETIMEDOUT;  // the peer did not read for idle_ns
    }
    return 0;
  }

  /// 0, or why it ended: -ESHUTDOWN when the server stops. A peer whose next request is not there
  /// within idle_ns makes way for one that waits for a warp.
  GROSR_DEVICE long serve(int peer, const buffers& b) const {
    using protocol = session<together, device_table>;
    const together team;
    protocol s(team, table, b);
    long ended = 0;
    prepare(peer);
    std::uint64_t since = now(), requests = 0;
    for (bool open = true; open && ended == 0;) {
      const protocol::next next = s.step();
      team.sync();  // what all lanes wrote
      if (const std::uint32_t bytes = s.answer_bytes(); bytes != 0) {
        ended = send_all(peer, s.answer(), bytes);
        s.sent();
      }
      if (next == protocol::next::close) open = false;
      if (s.counts().requests() != requests) {
        requests = s.counts().requests();
        since = now();
      }
      if (next != protocol::next::receive || ended != 0) continue;
      const long n = receive(peer, s.room(), s.room_bytes());
      if (n > 0)
        s.received(static_cast<std::uint32_t>(n));
      else if (n == 0)
        open = false;
      else if (n != -EAGAIN)
        ended = n;
      if (ended == 0 && now() - since >= idle_ns && others_wait()) ended = -ETIMEDOUT;
    }
    if (team.leads()) add(s.counts());
    team.sync();
    return ended;
  }

  GROSR_DEVICE void add(const totals& t) const {
    const auto to = [](std::uint64_t& sum, std::uint64_t n) {
      if (n != 0) simt::atomic_ref<std::uint64_t>(sum).fetch_add(n, simt::relaxed);
    };
    to(all->connections, 1);
    to(all->gets, t.gets);
    to(all->hits, t.hits);
    to(all->sets, t.sets);
    to(all->deletes, t.deletes);
    to(all->refused, t.refused);
  }

  /// Whole warp: takes a connection and serves it to its end. False when the server stops.
  GROSR_DEVICE bool serve_next(std::uint32_t worker) const {
    unsigned char* const mine = memory + std::size_t{worker} * bytes_a_worker();
    const buffers b{mine, mine + buffers::in_bytes(longest_value), longest_value};
    long peer = 0;
    for (unsigned turn = 0; (peer = sys::accept(sys.warp(), *listener)) < 0; ++turn) {
      if (peer == -ESHUTDOWN) return false;
      simt::pause(turn, "a connection");  // the peer went again, or there are too many descriptors
    }
    const long ended = serve(static_cast<int>(peer), b);
    sys::close(sys.warp(), static_cast<int>(peer));
    return ended != -ESHUTDOWN;
  }
};

struct answer {
  static constexpr grosr::width width = grosr::width::warp;
  const answering* how;  // in device memory

  GROSR_DEVICE void operator()(auto& context) const {
    const answering h = *how;
    if (h.serve_next(context.worker()) && context.rank() == 0) context.spawn(*this);
  }
};

sys::options options_of(const server_options& o, unsigned workers) {
  sys::options s;
  s.threads = o.threads;
  s.policy.network = true;
  s.descriptors = workers + 16;
  return s;
}

// As few blocks as have that many warps, and no watchdog: who waits for a connection may wait for
// days.
runtime_options runtime_of(const device& d, unsigned workers) {
  runtime_options o;
  const unsigned blocks = (workers + run::warps_per_block - 1) / run::warps_per_block;
  const unsigned sms = d.properties().sms;
  o.sms = std::min(blocks, sms);
  o.blocks_per_sm = (blocks + sms - 1) / sms;
  o.watchdog = {};
  o.memory_limit = std::size_t{64} << 20;
  return o;
}

std::uint64_t idle_ns_of(const device_options& k) {
  // A time-out of 0 would be none.
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(k.idle * 1e9), 1'000'000);
}

std::size_t usual_memory(const device& d) {
  return d.is_cuda() ? std::size_t{1} << 30 : std::size_t{64} << 20;
}

class on_device : public server {
 public:
  on_device(const device& d, const server_options& o, const device_options& k)
      : name_(o.name),
        connections_(k.workers != 0 ? k.workers : usual_workers(d)),
        tasks_(d, runtime_of(d, connections_)),
        heap_(d, o.memory != 0 ? o.memory : usual_memory(d)),
        buckets_(d, simt::space::device, d.is_cuda() ? 1u << 20 : 1u << 14),
        items_(d, simt::space::device, 1),
        all_(d, simt::space::device, 1),
        memory_(d, simt::space::device,
                std::size_t{tasks_.stats().workers} *
                    (buffers::in_bytes(o.longest_value) + buffers::out_bytes(o.longest_value))),
        calls_(d, options_of(o, connections_)),
        listener_(tool::open_sockets_on(d, calls_, SOCK_STREAM, name_, 1)),
        how_(d, simt::space::device, 1) {
    calls_.coalesce(k.batch != 0 ? k.batch : usual_batch, {});
    const device_table table{buckets_.data(), static_cast<std::uint32_t>(buckets_.size() - 1),
                             items_.data(), heap_.ref()};
    const answering how{calls_.ref(),    listener_.data(), table,         memory_.data(),
                        o.longest_value, k.looks,          idle_ns_of(k), all_.data()};
    how_.copy_from({&how, 1});
    tasks_.submit(std::vector<answer>(connections_, answer{how_.data()}));
  }

  ~on_device() override {
    calls_.stop();  // else the tasks would never end
    try {
      tasks_.stop();
    } catch (const error&) {
      // The device is lost: check() and stop() say so.
    }
  }

  sockaddr_in name() const override { return name_; }
  void check() override { tasks_.wait_all_for({}); }

  totals stop() override {
    calls_.stop();
    tasks_.stop();
    totals t;
    all_.copy_to({&t, 1});
    return t;
  }

  std::uint64_t items() override {
    std::uint64_t n = 0;
    items_.copy_to({&n, 1});
    const heap_report h = heap_.report();
    if (h.live != n || h.foreign_frees != 0 || h.double_frees != 0)
      throw std::runtime_error("the table's memory is not in order: " + std::to_string(n) +
                               " keys, but " + std::to_string(h.live) + " blocks");
    return n;
  }

  tool::calls_made calls() const override { return tool::calls_made(calls_.statistics()); }

 private:
  static constexpr unsigned usual_batch = 8;

  sockaddr_in name_;
  unsigned connections_;   // at a time
  runtime<answer> tasks_;  // loaded before the server rests
  heap heap_;
  simt::buffer<bucket> buckets_;
  simt::buffer<std::uint64_t> items_;
  simt::buffer<totals> all_;
  simt::buffer<unsigned char> memory_;
  sys::server calls_;
  simt::buffer<int> listener_;
  simt::buffer<answering> how_;
};

}  // namespace

unsigned usual_workers(const device& d) { return d.is_cuda() ? 512 : 8; }

std::unique_ptr<server> serve_on(const device& d, const server_options& o,
                                 const device_options& k) {
  return std::make_unique<on_device>(d, o, k);
}

}  // namespace grosr::store
