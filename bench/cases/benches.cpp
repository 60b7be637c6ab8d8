#include "cases/benches.hpp"

#include "limits/limits.hpp"

namespace grosr::tool {

std::vector<bench> benches() {
  constexpr std::uint64_t most_tasks = 100'000'000;
  return {
      {"limits",
       "what the hardware allows: launches, bus, memory, atomics, barriers",
       {},
       "grosr bench limits --json limits.json",
       bench_limits},
      {"latency",
       "one task submitted, run and seen complete; a dependent pair; from parked",
       {},
       "grosr bench latency --repeats 1000",
       bench_latency},
      {"pairs",
       "pairs of dependent stages, against two launches and two waits",
       {{"N", "pairs; default 100, 1k, 10k, 50k on GPUs", 1, most_tasks}},
       "grosr bench pairs 50k",
       bench_pairs,
       false,
       "exp-a"},
      {"throughput",
       "many small tasks from one host thread, against launch + wait",
       {{"N", "tasks; default 1k, 10k, 50k, 1M on GPUs", 1, most_tasks},
        {"ITERS", "the same as --repeats", 1, 1'000'000}},
       "grosr bench throughput 1M 20",
       bench_throughput,
       false,
       "exp-b"},
      {"baselines",
       "the same with every baseline: sync, batched, graphs, bulk",
       {{"N", "tasks; default 1k, 10k, 50k on GPUs", 1, 1'000'000},
        {"ITERS", "the same as --repeats", 1, 1'000'000}},
       "grosr bench baselines 50k 5",
       bench_baselines,
       false,
       "exp-b-plus"},
      {"bfs",
       "breadth-first search, against launches, graphs, a cooperative kernel, the "
       "CPU; shortest paths",
       {{"SCALE", "a Kronecker graph of 2^SCALE vertices alone, 4 to 26; default all", 4, 26}},
       "grosr bench bfs --json bfs.json",
       bench_bfs,
       false,
       "exp-c"},
      {"allocator",
       "allocations by device code, against the device's own malloc",
       {{"THREADS", "one row alone: threads that allocate; the others default to", 1, 1u << 22},
        {"ITERS", "allocations each; 50 on GPUs", 1, 1'000'000},
        {"SIZE", "bytes; 64", 4, 65'536},
        {"MODE", "0: one block at a time; 1: OUTSTANDING; 2: these, of 64 to 512 bytes; 0", 0, 2},
        {"OUTSTANDING", "blocks that a thread has; 16", 1, 1024},
        {"TOUCH", "bytes written to each, at most SIZE; 4", 0, 65'536}},
       "grosr bench allocator 2048 200 256 1 16 64",
       bench_allocator,
       false,
       "exp-d"},
      {"allocator-stress",
       "the same memory for other sizes, frees by other threads, random traffic for a while",
       {{"SECONDS", "of random traffic; default 60 on GPUs, 3 on the host backend", 1, 1'000'000}},
       "grosr bench allocator-stress 3600",
       bench_allocator_stress,
       false,
       "exp-d-stress"},
      {"spawn",
       "tasks that start tasks: binary trees of 16-byte, 32-byte and block-wide tasks",
       {{"DEPTH", "of the trees of lane tasks; 2^(DEPTH + 1) - 1 tasks; default 25 on GPUs", 1,
         30}},
       "grosr bench spawn 20",
       bench_spawn},
      {"forkjoin",
       "programs of tasks that fork and join: fib, queens, sorts, a tree search, Strassen",
       {},
       "grosr bench forkjoin --repeats 5",
       bench_forkjoin},
      {"forkjoin-sweep",
       "some of these programs on 1 to all multiprocessors, and with more and less task memory",
       {},
       "grosr bench forkjoin-sweep --repeats 3",
       bench_forkjoin_sweep},
      {"channels",
       "channels, and graphs of functions that they connect: rates, widths, who reserves",
       {},
       "grosr bench channels --repeats 5",
       bench_channels},
      {"priority",
       "urgent tasks while low-priority work fills every worker; and starvation",
       {{"TILE_US", "how long a tile of the low-priority work is; default 100", 1, 100'000}},
       "grosr bench priority 50",
       bench_priority},
      {"soak",
       "submits without a pause and watches the memory of the process and of the tasks",
       {{"SECONDS", "how long; default 60 on GPUs, 5 on the host backend", 1, 1'000'000}},
       "grosr bench soak 600",
       bench_soak},
      {"syscalls",
       "system calls from device code: latency, rates, reading files",
       {},
       "grosr bench syscalls --repeats 5",
       bench_syscalls},
      {"syscalls-sweep",
       "the same by granularity, ordering, waiting or not, and coalescing",
       {{"PART", "1 granularity, 2 ordering, 3 coalescing; default all", 1, 3}},
       "grosr bench syscalls-sweep --json sweep.json",
       bench_syscalls_sweep},
      {"pair-of-programs",
       "two programs, each with a runtime on the same device: both must finish",
       {{"DEPTH", "of their trees; default 22 on GPUs", 1, 30}},
       "grosr bench pair-of-programs --device cuda:0",
       bench_pair_of_programs},
      {"pair-child",
       "one of the pair-of-programs",
       {{"DEPTH", "of its trees", 1, 30}},
       "",
       bench_pair_child,
       true},
  };
}

double ping_pong_limit(session& s) {
  const samples us = limits::ping_pong(s.where, s.sized(5000u, 200u)).us;
  s.out.limit("ping_pong_p50_us", us.median());
  return us.median();
}

double bus_limit(session& s) {
  const std::size_t mb = 1 << 20;
  const double gb_per_s = limits::lanes_load(s.where, s.sized(64 * mb, mb)).number;
  s.out.limit("bus_loads_by_lanes_gb_per_s", gb_per_s);
  return gb_per_s;
}

}  // namespace grosr::tool
