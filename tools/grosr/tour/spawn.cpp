// Tour: tasks that start tasks.
#include "cli/text.hpp"
#include "limits/limits.hpp"
#include "tour/parts.hpp"
#include "work/trees.hpp"

namespace grosr::tool {

void tour_spawn(session& s, const std::string&) {
  const std::size_t mb = 1 << 20;
  const limits::figure memory = limits::memory_read(s.where, s.sized(2048 * mb, 8 * mb));
  const std::uint32_t depth = s.sized(25u, 12u);
  const runtime_options o = usual_options(s.where);
  forest trees(s.where, tree_kind::small, o);
  any_runtime& r = trees.runtime();
  std::uint64_t planted = 0;
  const samples us = s.repeat("spawn", {1, 5, 2.0}, [&] {
    ++planted;
    return timed([&] {
      trees.plant(depth);
      await(r);
    });
  });
  const runtime_stats stats = settled_stats(r);
  const std::uint64_t tasks = forest::tasks(depth);
  std::string wrong = trouble(r, stats, o.memory_limit);
  if (wrong.empty() && stats.tasks != planted * tasks)
    wrong = grouped(stats.tasks) + " tasks ran, not " + grouped(planted * tasks);
  row line("spawn");
  line.set("tasks", static_cast<double>(tasks))
      .set("tasks_per_s", static_cast<double>(tasks) * 1e6 / us.median())
      .limit("device memory", "tasks_per_s", memory.number * 1e9 / 32)
      .check(wrong.empty(), wrong);
  s.out.add(line);
}

}  // namespace grosr::tool
