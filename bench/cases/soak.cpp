// `grosr bench soak`: submits for a while and watches memory: what a program that runs for days
// must not do is grow.
#include "cases/benches.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "measure/machine.hpp"
#include "work/basic.hpp"

namespace grosr::tool {
void bench_soak(session& s) {
  const auto seconds = static_cast<double>(s.number(0).value_or(s.sized(60u, 5u)));
  const std::uint32_t n = s.sized(100'000u, 1'000u);
  // Results of spans, of single tasks, of pairs. Nobody waits for the last two before 16 rounds are
  // over: till then each round has a part of its own.
  constexpr std::uint32_t parts = 16;
  const std::uint32_t part = n / parts;
  simt::buffer<std::uint32_t> results(s.where, simt::space::device, 3 * n);
  std::vector<store> tasks(n), singles(n);
  std::vector<first_stage> pairs(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    tasks[i] = {results.data(), i, i};
    singles[i] = {results.data() + n, i, i};
    pairs[i] = {results.data() + 2 * n, i, 0};
  }
  std::vector<std::uint32_t> got(3 * n);
  results.copy_to(got);
  const runtime_options o = usual_options(s.where);
  auto r = make_basic_runtime(s.where, o);

  std::uint64_t submitted = 0, spawned = 0, rounds = 0;
  const auto round = [&] {
    // Spans of every size, single tasks, tasks that spawn; a thousand tickets are left to
    // themselves.
    const std::uint32_t size = 1 + static_cast<std::uint32_t>(rounds * 7919 % n);
    const std::uint32_t few = std::min({size, part, 100u}), some = std::min(size, part);
    const auto first = static_cast<std::uint32_t>(rounds % parts) * part;
    await(*r, r->submit(std::span<const store>(tasks.data(), size)));
    for (std::uint32_t i = 0; i < few; ++i) r->submit(singles[first + i]);
    r->submit(std::span<const first_stage>(pairs.data() + first, some));
    submitted += size + few + some;
    spawned += some;
    if (++rounds % parts == 0) await(*r);
  };
  for (const auto began = clock::now();
       microseconds_since(began) < 1e6 * std::min(2.0, seconds / 4);)
    round();
  const auto rss_begin = static_cast<double>(resident_bytes());
  double rss_most = rss_begin;
  const auto began = clock::now();
  {
    progress shown("soak, seconds", static_cast<std::uint64_t>(seconds));
    const std::uint64_t tasks_before = submitted + spawned;
    while (microseconds_since(began) < seconds * 1e6 && !interrupt::requested()) {
      round();
      if (rounds % 64 == 0) rss_most = std::max(rss_most, static_cast<double>(resident_bytes()));
      if (!interrupt::requested())
        shown.at(static_cast<std::uint64_t>(microseconds_since(began) / 1e6));
    }
    await(*r);
    const double spent = microseconds_since(began) / 1e6;
    results.copy_to(got);
    const runtime_stats stats = settled_stats(*r);
    std::string wrong = trouble(*r, stats, o.memory_limit);
    if (wrong.empty() && stats.tasks != submitted + spawned)
      wrong = grouped(stats.tasks) + " tasks ran, not " + grouped(submitted + spawned);
    for (std::uint32_t i = 0; i < 3 * n && wrong.empty(); ++i)
      if (got[i] != 0 && got[i] != 2 * (i % n) + (i >= 2 * n ? 1 : 0))
        wrong = "result " + grouped(i) + " is " + grouped(got[i]);
    const auto rss_end = static_cast<double>(resident_bytes());
    row soak("submitting for " + three_digits(spent) + " s");
    soak.set("tasks", static_cast<double>(submitted + spawned - tasks_before))
        .set("tasks_per_s", static_cast<double>(submitted + spawned - tasks_before) / spent)
        .set("host_begin_bytes", rss_begin)
        .set("host_end_bytes", rss_end)
        .set("host_most_bytes", std::max(rss_most, rss_end))
        .set("host_growth_bytes", rss_end - rss_begin)
        .set("task_memory_bytes", static_cast<double>(stats.memory))
        .set("pinned_bytes", static_cast<double>(stats.host_memory))
        .check(wrong.empty(), wrong)
        .at_most("host_growth_bytes", 1 << 20, "flat")
        .at_most("task_memory_bytes", static_cast<double>(o.memory_limit), "the memory limit");
    s.out.add(soak);
  }
  interrupt::check();
}

}  // namespace grosr::tool
