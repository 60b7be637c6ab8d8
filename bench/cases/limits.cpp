// `grosr bench limits`.
#include "limits/limits.hpp"

#include "cases/benches.hpp"

namespace grosr::tool {
namespace {

void add_times(session& s, const char* name, const limits::times& t) {
  row r(name);
  s.out.add(r.latency(t.us).check(t.wrong.empty(), t.wrong));
}

void add_figure(session& s, const char* name, const char* key, const limits::figure& f) {
  row r(name);
  s.out.add(r.set(key, f.number).check(f.wrong.empty(), f.wrong));
}

void add_ring_reader(session& s) {
  const auto records = s.sized(1'000'000u, 10'000u);
  const limits::times t = limits::ring_reader(s.where, records, s.sized(11u, 3u));
  row r("bus, a ring of pinned memory read by a resident kernel");
  s.out.add(r.rate(t.us, "records", records).check(t.wrong.empty(), t.wrong));
}

}  // namespace

void bench_limits(session& s) {
  const device& d = s.where;
  const bool gpu = s.gpu();
  const std::size_t mb = 1 << 20;
  const std::size_t bus_bytes = gpu ? 256 * mb : 2 * mb, memory_bytes = gpu ? 4096 * mb : 16 * mb;
  const unsigned n = s.repeats ? s.repeats : s.sized(5000u, 200u);
  progress shown("limits", 18);
  const auto step = [&] { shown.next(); };

  add_times(s, "launch + wait, empty kernel", limits::launch_and_wait(d, n)), step();
  add_figure(s, "launch without waiting", "launch_us", limits::launch_only(d, n)), step();
  if (auto node = limits::graph_node(d, s.sized(10'000u, 10u)))
    add_figure(s, "CUDA graph replay", "node_us", *node);
  step();
  add_times(s, "ping-pong CPU - device - CPU, pinned memory", limits::ping_pong(d, n)), step();
  add_times(s, "ping-pong device - CPU - device, pinned memory", limits::pong_ping(d, n)), step();
  add_figure(s, "round trip between two SMs", "round_trip_us",
             limits::hop(d, s.sized(20'000u, 500u))),
      step();
  add_figure(s, "from lane to lane and back, block-shared memory", "hop_us",
             limits::hop_in_warp(d, s.sized(200'000u, 2'000u))),
      step();
  add_figure(s, "grid barrier, one block an SM", "barrier_us",
             limits::grid_barrier(d, s.sized(20'000u, 200u))),
      step();
  add_figure(s, "atomics on one word, one a lane", "lanes_per_s",
             limits::one_address_atomics(d, 1)),
      step();
  add_figure(s, "atomics on one word, one a warp", "lanes_per_s",
             limits::one_address_atomics(d, 32)),
      step();
  add_figure(s, "atomics on one word, one a block of 512", "lanes_per_s",
             limits::one_address_atomics(d, 512)),
      step();
  add_figure(s, "atomics spread over 8 MB", "lanes_per_s", limits::spread_atomics(d)), step();
  add_figure(s, "device memory, read", "gb_per_s", limits::memory_read(d, memory_bytes)), step();
  add_figure(s, "bus, copy to the device", "gb_per_s", limits::copy_to_device(d, bus_bytes)),
      step();
  add_figure(s, "bus, copy to the host", "gb_per_s", limits::copy_to_host(d, bus_bytes)), step();
  add_figure(s, "bus, loads by lanes", "gb_per_s", limits::lanes_load(d, bus_bytes)), step();
  add_figure(s, "bus, stores by lanes", "gb_per_s", limits::lanes_store(d, bus_bytes)), step();
  add_ring_reader(s), step();
  if (!gpu) s.out.remark("on the host backend the bus is memory, and lanes are fibers");
}

}  // namespace grosr::tool
