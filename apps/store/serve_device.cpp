// The tasks that answer. A connection is a chain of them: each answers what is there, and awaits
// the next bytes. No worker waits for a peer.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>

#include "connection_table.hpp"
#include "grosr/alloc/heap.hpp"
#include "grosr/await/awaited.hpp"
#include "grosr/run/runtime.hpp"
#include "grosr/simt/launch.hpp"
#include "net/open_sockets.hpp"
#include "server.hpp"

namespace grosr::store {
namespace {

constexpr unsigned most_acceptors = 4;
constexpr int pause_ms = 20;  ///< after an accept() that failed
/// What a connection awaits at once, so that its call holds a small chunk.
constexpr std::uint32_t awaited_bytes = 4096;

std::uint32_t bytes_a_connection(std::uint32_t longest_value) {
  return buffers::in_bytes(longest_value) + buffers::out_bytes(longest_value);
}

/// What the tasks share, in device memory.
struct answering {
  sys::server_ref sys;
  const int* listener;
  device_table table;
  connection_table* connections;
  unsigned char* memory;  // of all connections, by their places
  std::uint32_t longest_value, looks;
  std::uint64_t idle_ns;
  totals* all;

  GROSR_DEVICE static std::uint64_t now() {
    return simt::shuffle(simt::full_mask, simt::clock_ns(), 0);
  }

  /// Whether somebody comes whom nobody accepts. The same for all lanes.
  GROSR_DEVICE bool others_wait() const {
    const unsigned nobody = simt::lane_id() == 0 && connections->nobody_accepts() ? 1 : 0;
    if (simt::shuffle(simt::full_mask, nobody, 0) == 0) return false;
    pollfd p{*listener, POLLIN, 0};
    return sys::poll(sys.warp(), &p, 1, 0) > 0;
  }

  GROSR_DEVICE connection begin(int peer, std::uint32_t place) const {
    const std::uint32_t in = buffers::in_bytes(longest_value);
    unsigned char* const mine =
        memory + std::size_t{place} * (in + buffers::out_bytes(longest_value));
    return {protocol({}, table, {mine, mine + in, longest_value}),
            peer,
            protocol::next::receive,
            0,
            0,
            simt::clock_ns()};
  }

  /// Whole warp: takes what an awaited call did, -EAGAIN when the peer did nothing for idle_ns.
  /// False: the connection has ended.
  GROSR_DEVICE bool take(connection& c, long moved) const {
    const bool sends = c.state.answer_bytes() != 0;
    if (moved == -EAGAIN) return !sends || !others_wait();
    if (moved <= 0) return false;
    if (sends) {
      c.sent += static_cast<std::uint32_t>(moved);
      // One that reads a little at a time has had its turn, too.
      if (now() - c.complete_ns >= idle_ns && others_wait()) return false;
    } else {
      c.state.received(static_cast<std::uint32_t>(moved));
      c.then = protocol::next::send;
    }
    return true;
  }

  /// Whole warp: answers what is there, and what comes at once. True: the peer is to be waited for;
  /// false: the connection has ended.
  GROSR_DEVICE bool answer(connection& c) const {
    for (std::uint32_t look = 0;;) {
      while (c.sent < c.state.answer_bytes()) {
        const long n = sys::send(sys.warp(), c.peer, c.state.answer() + c.sent,
                                 c.state.answer_bytes() - c.sent, MSG_DONTWAIT);
        if (n < 0) return n == -EAGAIN;
        c.sent += static_cast<std::uint32_t>(n);
      }
      c.state.sent();
      c.sent = 0;
      if (c.then == protocol::next::close) return false;
      if (c.then == protocol::next::receive) {
        if (now() - c.complete_ns >= idle_ns && others_wait()) return false;
        if (look++ == looks) return true;
        const long n =
            sys::recv(sys.warp(), c.peer, c.state.room(), c.state.room_bytes(), MSG_DONTWAIT);
        if (n <= 0) return n == -EAGAIN;
        c.state.received(static_cast<std::uint32_t>(n));
      }
      c.then = c.state.step();
      together().sync();  // what all lanes wrote
      if (c.state.counts().requests() == c.requests) continue;
      c.requests = c.state.counts().requests();
      c.complete_ns = now();
    }
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
};

/// Runs when a connection's bytes have come, or have gone. A warp.
struct moved {
  static constexpr grosr::width width = grosr::width::warp;
  using result = void;
  const answering* how;
  std::uint32_t place;
  long bytes = 0;
  GROSR_DEVICE void operator()(auto& context) const;
};

/// Runs first of all, and when accept(), or a pause after it, has ended. A lane.
struct accepted {
  static constexpr long not_yet = -EINPROGRESS;
  using result = void;
  const answering* how;
  std::uint32_t place;  // for who comes
  long peer = not_yet, paused = not_yet;
  GROSR_DEVICE void operator()(auto& context) const;
};

/// One lane: keeps the connection, and awaits what it waits for.
GROSR_DEVICE void keep(auto& context, const answering* how, std::uint32_t place,
                       const connection& c) {
  how->connections->at[place] = c;
  auto& next = context.join(moved{how, place});
  const auto call = context.await(how->sys, &next.bytes);
  const auto at_once = [](std::uint32_t n) { return n < awaited_bytes ? n : awaited_bytes; };
  if (const std::uint32_t rest = c.state.answer_bytes() - c.sent; rest != 0)
    sys::send(call, c.peer, c.state.answer() + c.sent, at_once(rest));
  else
    sys::recv(call, c.peer, c.state.room(), at_once(c.state.room_bytes()));
}

GROSR_DEVICE void moved::operator()(auto& context) const {
  connection c = how->connections->at[place];
  if (how->take(c, bytes) && how->answer(c)) {
    if (context.rank() == 0) keep(context, how, place, c);
    return;
  }
  sys::close(how->sys.warp(), c.peer);
  if (context.rank() != 0) return;
  how->add(c.state.counts());
  if (how->connections->give(place)) context.spawn(accepted{how, place});
}

GROSR_DEVICE void accepted::operator()(auto& context) const {
  connection_table& all = *how->connections;
  if (paused != not_yet) all.end_pause();
  if (peer == -ESHUTDOWN) return;
  std::uint32_t free = place;
  if (peer >= 0) {
    all.at[place] = how->begin(static_cast<int>(peer), place);
    context.spawn(moved{how, place, -EAGAIN});
    if (!all.take(free)) return;
  }
  auto& next = context.join(accepted{how, free});
  // -EAGAIN: nobody came for idle_ns. Others: too many descriptors, or who came has gone again.
  if (peer < 0 && peer != not_yet && peer != -EAGAIN) {
    all.begin_pause();
    sys::poll(context.await(how->sys, &next.paused), nullptr, 0, pause_ms);
  } else {
    sys::accept(context.await(how->sys, &next.peer), *how->listener);
  }
}

/// What connections have from the listener: their waits are bounded, and peers that have gone
/// without a word are noticed. A warp.
struct prepare {
  sys::server_ref sys;
  const int* listener;
  std::uint64_t idle_ns;

  GROSR_DEVICE void operator()() const {
    const timeval limit{static_cast<time_t>(idle_ns / 1'000'000'000),
                        static_cast<suseconds_t>(idle_ns % 1'000'000'000 / 1000)};
    const int on = 1;
    sys::setsockopt(sys.warp(), *listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sys::setsockopt(sys.warp(), *listener, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sys::setsockopt(sys.warp(), *listener, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  }
};

sys::options options_of(const server_options& o, unsigned connections, unsigned workers) {
  const unsigned calls = connections + most_acceptors;
  sys::options s;
  s.threads = o.threads;
  s.policy.network = true;
  s.descriptors = connections + 16;
  s.awaited_calls = std::max(2 * calls, 32u);
  s.chunks[1] = 2 * (calls + workers);  // those of awaited_bytes
  return s;
}

// As few blocks as have that many warps.
runtime_options runtime_of(const device& d, unsigned workers) {
  runtime_options o;
  const unsigned blocks = (workers + run::warps_per_block - 1) / run::warps_per_block;
  const unsigned sms = d.properties().sms;
  o.sms = std::min(blocks, sms);
  o.blocks_per_sm = (blocks + sms - 1) / sms;
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
        calls_(d, options_of(o, k.connections, k.workers)),
        tasks_(d, runtime_of(d, k.workers)),
        heap_(d, o.memory != 0 ? o.memory : usual_memory(d)),
        buckets_(d, simt::space::device, d.is_cuda() ? 1u << 20 : 1u << 14),
        items_(d, simt::space::device, 1),
        all_(d, simt::space::device, 1),
        memory_(d, simt::space::device,
                std::size_t{k.connections} * bytes_a_connection(o.longest_value)),
        connections_(d, simt::space::device, k.connections),
        free_(d, simt::space::device, k.connections),
        places_(d, simt::space::device, 1),
        listener_(tool::open_sockets_on(d, calls_, SOCK_STREAM, name_, 1)),
        how_(d, simt::space::device, 1) {
    calls_.coalesce(k.batch != 0 ? k.batch : usual_batch, {});
    // The first places are the acceptors', the others free.
    const unsigned acceptors = std::min(most_acceptors, k.connections);
    std::vector<std::uint32_t> free(k.connections - acceptors);
    std::iota(free.rbegin(), free.rend(), acceptors);
    free_.copy_from(free);
    const connection_table places{connections_.data(), free_.data(),
                                  static_cast<std::uint32_t>(free.size()), acceptors};
    places_.copy_from({&places, 1});
    const device_table table{buckets_.data(), static_cast<std::uint32_t>(buckets_.size() - 1),
                             items_.data(), heap_.ref()};
    const answering how{calls_.ref(),   listener_.data(), table,
                        places_.data(), memory_.data(),   o.longest_value,
                        k.looks,        idle_ns_of(k),    all_.data()};
    how_.copy_from({&how, 1});
    simt::run(d, {1, simt::warp_size}, prepare{calls_.ref(), listener_.data(), how.idle_ns});
    std::vector<accepted> first;
    for (unsigned i = 0; i < acceptors; ++i) first.push_back({how_.data(), i});
    tasks_.submit(first);
  }

  ~on_device() override {
    calls_.stop();  // else connections would never end
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
  sys::server calls_;
  runtime<accepted, moved, awaited> tasks_;
  heap heap_;
  simt::buffer<bucket> buckets_;
  simt::buffer<std::uint64_t> items_;
  simt::buffer<totals> all_;
  simt::buffer<unsigned char> memory_;
  simt::buffer<connection> connections_;
  simt::buffer<std::uint32_t> free_;
  simt::buffer<connection_table> places_;
  simt::buffer<int> listener_;
  simt::buffer<answering> how_;
};

}  // namespace

unsigned usual_workers(const device& d) { return d.is_cuda() ? 512 : 8; }

unsigned usual_connections(const device& d, std::uint32_t longest_value) {
  const std::size_t most = d.is_cuda() ? 4096 : 1024;
  const std::size_t memory = d.is_cuda() ? std::size_t{512} << 20 : std::size_t{64} << 20;
  return static_cast<unsigned>(std::min(most, memory / bytes_a_connection(longest_value)));
}

std::unique_ptr<server> serve_on(const device& d, const server_options& o,
                                 const device_options& k) {
  return std::make_unique<on_device>(d, o, k);
}

}  // namespace grosr::store
