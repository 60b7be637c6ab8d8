// The benches there are. A new one is a file that defines its function, and a line in benches.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/session.hpp"

namespace grosr::tool {

/// A positional argument of a bench: a whole number within bounds.
struct bench_argument {
  const char* name;
  const char* meaning;
  std::uint64_t least, most;
};

struct bench {
  const char* name;
  const char* summary;
  std::vector<bench_argument> arguments;
  const char* example;
  void (*run)(session&);
  bool hidden = false;
};

const std::vector<bench>& benches();
std::string bench_names();  ///< "limits, latency, ..."

void bench_limits(session& s);
void bench_latency(session& s);
void bench_exp_a(session& s);
void bench_exp_b(session& s);
void bench_exp_b_plus(session& s);
void bench_exp_c(session& s);
void bench_exp_d(session& s);
void bench_exp_d_stress(session& s);
void bench_spawn(session& s);
void bench_forkjoin(session& s);
void bench_forkjoin_sweep(session& s);
void bench_channels(session& s);
void bench_priority(session& s);
void bench_soak(session& s);
void bench_syscalls(session& s);
void bench_syscalls_sweep(session& s);
void bench_syscalls_fuzz(session& s);
void bench_pair(session& s);
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
