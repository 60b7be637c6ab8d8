// `grosr bench await`: calls to the host that tasks await, beside the same calls waited for in
// place.
#include "cases/await_work.hpp"
#include "cases/benches.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

using how = waiting_tasks::how;

struct measured {
  samples us;
  std::string wrong;
};

measured measure(session& s, waiting_tasks& tasks, how h, std::uint32_t count, std::uint32_t calls,
                 std::uint32_t sleep_us) {
  measured m;
  const std::string what = h == how::awaited ? "await: awaited" : "await: waited for in place";
  m.us = s.repeat(what, {1, s.sized(11u, 5u), 5.0}, [&] {
    return timed([&] {
      tasks.start(h, count, calls, sleep_us);
      await(tasks.runtime());
    });
  });
  if (const std::uint32_t n = tasks.ended(); n != count)
    m.wrong = grouped(n) + " of " + grouped(count) + " tasks had all their calls made";
  return m;
}

}  // namespace

void bench_await(session& s) {
  const auto many = static_cast<std::uint32_t>(s.number(0).value_or(s.sized(100'000u, 2'000u)));
  const double ping_pong = ping_pong_limit(s);  // has a kernel of its own: before the runtime's
  const runtime_options o = usual_options(s.where);
  waiting_tasks tasks(s.where, many, o);
  constexpr std::uint32_t sleep_us = 1000;
  {
    const measured m = measure(s, tasks, how::awaited, many, 1, sleep_us);
    const auto fewer = std::min(many, s.sized(16'384u, 512u));
    const measured beside = measure(s, tasks, how::in_place, fewer, 1, sleep_us);
    row r(grouped(many) + " tasks, each sleeps for 1 ms");
    r.set("all_ms", m.us.median() / 1e3)
        .rate(m.us, "sleeps", many)
        .limit("the sleep itself", "all_ms", sleep_us / 1e3)
        .baseline("waited for in place, " + grouped(fewer) + " of them", "sleeps_per_s",
                  fewer / beside.us.median() * 1e6)
        .check(m.wrong.empty(), m.wrong)
        .check(beside.wrong.empty(), beside.wrong);
    if (s.gpu()) r.at_most("all_ms", 20);
    s.out.add(r);
  }
  const auto calls = s.sized(1000u, 50u);
  for (const std::uint32_t count : {1u, many}) {
    const std::uint32_t each = count == 1 ? calls : 1;
    const measured m = measure(s, tasks, how::awaited, count, each, 0);
    const measured beside = measure(s, tasks, how::in_place, count, each, 0);
    const double all = static_cast<double>(count) * each;
    row r(count == 1 ? "one task, " + grouped(each) + " calls one after the other"
                     : grouped(count) + " tasks, a call each");
    r.rate(m.us, "calls", all)
        .set("call_us", m.us.median() / all)
        .baseline("waited for in place", "call_us", beside.us.median() / all)
        .check(m.wrong.empty(), m.wrong)
        .check(beside.wrong.empty(), beside.wrong);
    if (count == 1) r.limit("the bus, there and back", "call_us", ping_pong);
    s.out.add(r);
  }
  if (const std::string wrong =
          trouble(tasks.runtime(), settled_stats(tasks.runtime()), o.memory_limit);
      !wrong.empty())
    s.out.add(row("the runtime").check(false, wrong));
}

}  // namespace grosr::tool
