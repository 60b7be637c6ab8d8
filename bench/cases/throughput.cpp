// `grosr bench throughput`: N independent tasks of 16 bytes from one
// host thread, results[i] = 2 * i. Baseline: a launch and a wait for each.
#include "cases/benches.hpp"
#include "cases/store_work.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

void throughput(session& s, std::uint32_t n, double bus_gb_per_s) {
  const std::string size = "N = " + grouped(n) + ": ";
  store_work work(s, n);
  const std::uint32_t launched = std::min(n, s.sized(50'000u, 300u));
  row sync(size + "a launch and a wait a task");
  const outcome baseline = work.launch_each(launched, true);
  sync.rate(baseline.us, "tasks", launched).check(baseline.wrong.empty(), baseline.wrong);
  if (launched < n) sync.note("measured with N = " + grouped(launched) + ": more is not faster");
  s.out.add(sync);

  const outcome span = work.submit_span();
  row grosr(size + "GROSR, submitted as one span");
  grosr.rate(span.us, "tasks", n)
      .check(span.wrong.empty(), span.wrong)
      .limit("the bus, 16 bytes a task", "tasks_per_s", bus_gb_per_s * 1e9 / 16)
      .baseline("a launch and a wait a task", "tasks_per_s", sync.value("tasks_per_s"));
  const double goal = n == 1'000       ? 0.1e9
                      : n == 10'000    ? 0.5e9
                      : n == 50'000    ? 0.9e9
                      : n == 1'000'000 ? 1.1e9
                                       : 0;
  if (goal != 0) grosr.at_least("tasks_per_s", goal);
  s.out.add(grosr);

  if (n > s.sized(50'000u, 1'000u)) return;
  const outcome one = work.submit_by(1);
  row each(size + "GROSR, submitted one by one");
  each.rate(one.us, "tasks", n)
      .check(one.wrong.empty(), one.wrong)
      .baseline("a launch and a wait a task", "tasks_per_s", sync.value("tasks_per_s"));
  s.out.add(each);
}

}  // namespace

void bench_throughput(session& s) {
  if (auto iterations = s.number(1)) s.repeats = static_cast<unsigned>(*iterations);
  const double bus = bus_limit(s);
  std::vector<std::uint32_t> counts =
      s.gpu() ? std::vector<std::uint32_t>{1'000, 10'000, 50'000, 1'000'000}
              : std::vector<std::uint32_t>{1'000, 10'000};
  if (auto n = s.number(0)) counts = {static_cast<std::uint32_t>(*n)};
  s.out.remark("the clock runs from the submission to the last completion; tasks are built before");
  for (std::uint32_t n : counts) throughput(s, n, bus);
}

}  // namespace grosr::tool
