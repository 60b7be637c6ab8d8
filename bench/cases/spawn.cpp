// `grosr bench spawn`: binary trees of tasks that start tasks.
#include "cases/benches.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "limits/limits.hpp"
#include "work/trees.hpp"

namespace grosr::tool {
namespace {

struct species {
  tree_kind kind;
  const char* name;
  unsigned bytes;  // a task
  std::uint32_t depth;
  double goal;
};

// Independent of what the runtime counts: the leaves of a smaller tree count themselves.
std::string count_leaves(forest& trees, simt::buffer<std::uint32_t>& words, std::uint32_t depth) {
  words.copy_from(std::vector<std::uint32_t>(words.size()));
  trees.plant(depth, words.data());
  await(trees.runtime());
  std::vector<std::uint32_t> got(words.size());
  words.copy_to(got);
  std::uint64_t sum = 0;
  for (std::uint32_t w : got) sum += w;
  return sum == forest::leaves(depth)
             ? ""
             : grouped(sum) + " leaves ran, not " + grouped(forest::leaves(depth));
}

void grow(session& s, const species& k, double memory_gb_per_s) {
  progress shown(k.name);
  simt::buffer<std::uint32_t> words(s.where, simt::space::device, forest::count_words);
  const runtime_options o = usual_options(s.where);
  forest trees(s.where, k.kind, o);
  any_runtime& r = trees.runtime();
  std::string wrong = count_leaves(trees, words, k.depth > 4 ? k.depth - s.sized(4u, 1u) : k.depth);
  std::uint64_t before = settled_stats(r).tasks, trees_run = 0;
  const samples us = s.repeat(k.name, {1, s.sized(11u, 5u), 10.0}, [&] {
    ++trees_run;
    return timed([&] {
      trees.plant(k.depth);
      await(r);
    });
  });
  const runtime_stats stats = settled_stats(r);
  const std::uint64_t expected = trees_run * forest::tasks(k.depth);
  if (wrong.empty() && stats.tasks - before != expected)
    wrong = grouped(stats.tasks - before) + " tasks ran, not " + grouped(expected);
  if (wrong.empty()) wrong = trouble(r, stats, o.memory_limit);
  row grown(std::string(k.name) + ", " + grouped(forest::tasks(k.depth)) + " of them");
  grown.rate(us, "tasks", static_cast<double>(forest::tasks(k.depth)))
      .set("memory_bytes", static_cast<double>(stats.memory))
      .set("run_inside_parents_tasks", static_cast<double>(stats.inlined))
      .check(wrong.empty(), wrong)
      .at_most("memory_bytes", static_cast<double>(o.memory_limit), "the memory limit");
  if (k.kind != tree_kind::block)
    grown.limit("device memory, a record written and read", "tasks_per_s",
                memory_gb_per_s * 1e9 / (2 * k.bytes));
  if (s.gpu() && forest::tasks(k.depth) >= (1u << 20)) grown.at_least("tasks_per_s", k.goal);
  s.out.add(grown);
}

}  // namespace

void bench_spawn(session& s) {
  const std::size_t mb = 1 << 20;
  const limits::figure memory = limits::memory_read(s.where, s.sized(4096 * mb, 16 * mb));
  s.out.limit("device_memory_read_gb_per_s", memory.number);
  auto depth = s.sized(25u, 12u), wide_depth = s.sized(20u, 4u);
  if (auto d = s.number(0)) {
    depth = static_cast<std::uint32_t>(*d);
    wide_depth = depth > 8 ? depth - s.sized(5u, 8u) : 1;
  }
  grow(s, {tree_kind::small, "16-byte tasks", 16, depth, 30e9}, memory.number);
  grow(s, {tree_kind::large, "32-byte tasks", 32, depth, 20e9}, memory.number);
  grow(s, {tree_kind::block, "block-wide tasks", 16, wide_depth, 0.2e9}, memory.number);
}

}  // namespace grosr::tool
