// `grosr bench submit`: what it costs a program to submit tasks: one at a time, by ticket, and as
// spans of small tasks, results[i] = 2 * i. A limit is a bare resident kernel that reads a ring of
// pinned memory.
#include "cases/benches.hpp"
#include "cases/store_work.hpp"
#include "cli/text.hpp"
#include "limits/limits.hpp"

namespace grosr::tool {
namespace {

constexpr unsigned records_a_line = 8;

/// What else there is, in tasks a second.
struct others {
  double launch_each = 0, launch_ahead = 0;
  std::string wrong;
};

others measure_launches(session& s, std::uint32_t n) {
  store_work work(s, n);
  const outcome each = work.launch_each(n, true), ahead = work.launch_each(n, false);
  return {n * 1e6 / each.us.median(), n * 1e6 / ahead.us.median(),
          each.wrong.empty() ? ahead.wrong : each.wrong};
}

/// Adds its row; in tasks a second.
double bare_reader(session& s, std::uint32_t n) {
  const limits::times t = limits::ring_reader(s.where, n, s.sized(21u, 5u));
  row bare("N = " + grouped(n) + ": a bare reader of a pinned ring, 16 bytes a task");
  bare.rate(t.us, "tasks", n).check(t.wrong.empty(), t.wrong);
  s.out.add(bare);
  return bare.value("tasks_per_s");
}

void singles(session& s, std::uint32_t n, unsigned threads, double line_per_s, const others& o) {
  store_work work(s, n);
  const outcome one = work.submit_by(threads);
  row r("one at a time by " + std::to_string(threads) + (threads == 1 ? " thread" : " threads"));
  r.rate(one.us, "tasks", n)
      .set("a_submit_ns", one.submit_us.median() * 1e3 * threads / n)
      .limit("a bare reader of a pinned ring, 128 bytes a task", "tasks_per_s", line_per_s)
      .baseline("a launch and a wait a task", "tasks_per_s", o.launch_each)
      .baseline("launches, one wait", "tasks_per_s", o.launch_ahead)
      .check(one.wrong.empty(), one.wrong)
      .check(o.wrong.empty(), o.wrong);
  if (threads == 1) r.at_least("tasks_per_s", 20e6);
  if (threads == 8) r.at_least("tasks_per_s", 60e6);
  s.out.add(r);
}

void in_flight(session& s, std::uint32_t n, unsigned tickets, double ping_pong, const others& o) {
  store_work work(s, n);
  const outcome all = work.keep_in_flight(tickets);
  row r(std::to_string(tickets) + " tickets in flight, one thread");
  r.rate(all.us, "tasks", n)
      .limit(std::to_string(tickets) + " ping-pongs at a time", "tasks_per_s",
             tickets * 1e6 / ping_pong)
      .baseline("a launch and a wait a task", "tasks_per_s", o.launch_each)
      .check(all.wrong.empty(), all.wrong)
      .at_least("tasks_per_s", 8e6);
  s.out.add(r);
}

void span(session& s, std::uint32_t n, double read_per_s, const others& o) {
  store_work work(s, n);
  const outcome kernel = work.bulk(), tasks = work.submit_span();
  row r("N = " + grouped(n) + ": one span");
  r.rate(tasks.us, "tasks", n)
      .limit("a bare reader of a pinned ring, 16 bytes a task", "tasks_per_s", read_per_s)
      .baseline("a launch and a wait a task", "tasks_per_s", o.launch_each)
      .baseline("one launch for all", "tasks_per_s", n * 1e6 / kernel.us.median())
      .check(tasks.wrong.empty(), tasks.wrong)
      .check(kernel.wrong.empty(), kernel.wrong)
      .at_least("tasks_per_s", 0.8 * read_per_s, "0.8 of the bare reader");
  s.out.add(r);
}

}  // namespace

void bench_submit(session& s) {
  const auto given = s.number(0);
  const auto n = static_cast<std::uint32_t>(given.value_or(s.sized(1'000'000u, 2'000u)));
  std::vector<std::uint32_t> spans{1'000, 10'000};
  if (s.sized(true, false)) spans.insert(spans.end(), {50'000, 1'000'000});
  if (given) spans = {n};

  s.out.remark("the clock runs from the first submission to the last completion");
  const double ping_pong = ping_pong_limit(s);
  const others launches = measure_launches(s, std::min(n, s.sized(20'000u, 300u)));
  std::vector<double> read_per_s;
  for (std::uint32_t size : spans) read_per_s.push_back(bare_reader(s, size));

  for (unsigned threads : {1u, 2u, 4u, 8u})
    singles(s, n, threads, read_per_s.back() / records_a_line, launches);
  in_flight(s, n, 64, ping_pong, launches);
  for (std::size_t i = 0; i < spans.size(); ++i) span(s, spans[i], read_per_s[i], launches);
}

}  // namespace grosr::tool
