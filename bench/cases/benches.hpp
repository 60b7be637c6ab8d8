// The benches there are. A new one is a file that defines its function, a line here, and one in
// benches.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/bench.hpp"

namespace grosr::tool {

std::vector<bench> benches();

void bench_limits(session& s);
void bench_latency(session& s);
void bench_pairs(session& s);
void bench_throughput(session& s);
void bench_baselines(session& s);
void bench_bfs(session& s);
void bench_allocator(session& s);
void bench_allocator_stress(session& s);
void bench_spawn(session& s);
void bench_submit(session& s);
void bench_chain(session& s);
void bench_tail(session& s);
void bench_await(session& s);
void bench_streams(session& s);
void bench_forkjoin(session& s);
void bench_forkjoin_sweep(session& s);
void bench_channels(session& s);
void bench_dataflow(session& s);
void bench_policies(session& s);
void bench_messages(session& s);
void bench_priority(session& s);
void bench_soak(session& s);
void bench_syscalls(session& s);
void bench_syscalls_sweep(session& s);
void bench_pair_of_programs(session& s);
void bench_pair_child(session& s);

/// Shared by benches: the CPU-device-CPU ping-pong of this run, measured once a session and
/// recorded among the limits. Microseconds, p50.
double ping_pong_limit(session& s);

/// The same for loads of pinned memory by lanes, in GB/s: what submitted tasks come through.
double bus_limit(session& s);

/// Index of the first wrong element, as text; empty if `got[i] == expected(i)` for all i.
template <class Expected>
std::string first_wrong(const std::vector<std::uint32_t>& got, Expected&& expected) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != expected(i))
      return "result " + std::to_string(i) + " is " + std::to_string(got[i]) + ", not " +
             std::to_string(expected(i));
  return "";
}

}  // namespace grosr::tool
