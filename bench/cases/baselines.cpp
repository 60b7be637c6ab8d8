// `grosr bench baselines`: the tasks of `throughput` beside every fair
// baseline: a launch and a wait each, launches with one wait, a graph of launches, one bulk kernel.
#include <thread>

#include "cases/benches.hpp"
#include "cases/store_work.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

void compare(session& s, std::uint32_t n, double bus_gb_per_s) {
  store_work work(s, n);
  const std::string size = "N = " + grouped(n) + ": ";
  std::vector<std::pair<std::string, double>> rates;
  const auto add = [&](const std::string& name, const outcome& o, std::uint32_t count) {
    row r(size + name);
    r.rate(o.us, "tasks", count).check(o.wrong.empty(), o.wrong);
    if (count < n) r.note("measured with N = " + grouped(count) + ": more is not faster");
    rates.emplace_back(name, r.value("tasks_per_s"));
    s.out.add(r);
  };
  const std::uint32_t launched = std::min(n, s.sized(50'000u, 300u));
  add("sync (a launch and a wait each)", work.launch_each(launched, true), launched);
  add("batched (launches, one wait)", work.launch_each(launched, false), launched);
  if (s.gpu()) add("graphs (the launches as a CUDA graph)", work.graph(launched), launched);
  if (!s.gpu()) add("one std::thread, a function call each", work.plain_function(), n);
  add("bulk (one kernel)", work.bulk(), n);

  const outcome o = work.submit_span();
  row grosr(size + "GROSR");
  grosr.rate(o.us, "tasks", n)
      .check(o.wrong.empty(), o.wrong)
      .limit("the bus, 16 bytes a task", "tasks_per_s", bus_gb_per_s * 1e9 / 16);
  for (const auto& [name, rate] : rates) grosr.baseline(name, "tasks_per_s", rate);
  s.out.add(grosr);
}

}  // namespace

void bench_baselines(session& s) {
  if (auto iterations = s.number(1)) s.repeats = static_cast<unsigned>(*iterations);
  const double bus = bus_limit(s);
  std::vector<std::uint32_t> counts = s.gpu() ? std::vector<std::uint32_t>{1'000, 10'000, 50'000}
                                              : std::vector<std::uint32_t>{1'000};
  if (auto n = s.number(0)) counts = {static_cast<std::uint32_t>(*n)};
  s.out.remark("bulk is what to do where tasks are uniform, independent and known beforehand");
  for (std::uint32_t n : counts) compare(s, n, bus);
}

}  // namespace grosr::tool
