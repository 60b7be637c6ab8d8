// `grosr bench channels`: what channels cost, and graphs of functions that they connect.
#include "cases/benches.hpp"
#include "cases/channel_programs.hpp"
#include "cases/exchange.hpp"
#include "cli/text.hpp"
#include "recursion/fib.hpp"
#include "recursion/queens.hpp"

namespace grosr::tool {
namespace {

using channels::reserve_by;

/// One channel and a plain kernel. Leaders' reservations beside lanes' own, rows beside columns.
void exchanges(session& s) {
  const unsigned blocks = s.sized(s.where.properties().sms * 8, 4u);
  double by_lanes = 0;
  for (const reserve_by by : {reserve_by::lane, reserve_by::warp})
    for (const element_layout l : {element_layout::rows, element_layout::columns}) {
      if (by == reserve_by::lane && l == element_layout::columns) continue;
      const std::uint32_t steps = s.sized(by == reserve_by::warp ? 256u : 16u, 8u);
      const std::string name = std::string("one channel, elements of 32 bytes in ") +
                               (l == element_layout::rows ? "rows" : "columns") + ", reserved by " +
                               (by == reserve_by::warp ? "warps" : "lanes");
      channels::exchange_result last;
      bool right = true;
      const samples us = s.repeat(name, {1, s.sized(11u, 3u), 5.0}, [&] {
        last = channels::exchange(s.where, blocks, steps, 1u << 20, l, by);
        right = right && last.right;
        return last.us;
      });
      row r(name);
      r.rate(us, "elements", static_cast<double>(last.served))
          .check(right, "elements were lost, torn or served twice");
      if (by == reserve_by::lane) {
        by_lanes = r.value("elements_per_s");
      } else {
        r.baseline("each lane reserves for itself", "elements_per_s", by_lanes);
        if (s.gpu()) r.at_least("elements_per_s", 6e9);
      }
      s.out.add(r);
    }
}

channels::program_options with(session& s, std::uint32_t capacity,
                               reserve_by by = reserve_by::warp) {
  channels::program_options o;
  if (s.gpu()) o.runtime.memory_limit = std::size_t{1} << 30;
  o.capacity = capacity;
  o.reserve_by = by;
  return o;
}

/// How full batches were, what found no room, and how much memory all took.
row& finish(session& s, row& r, const channels::program& p, const channels::program_options& o) {
  double pushed = 0, places = 0, refused = 0;
  std::size_t bytes = 0;
  for (const channel_stats& c : p.channels()) {
    pushed += static_cast<double>(c.pushed);
    places += static_cast<double>(c.batches * c.batch);
    refused += static_cast<double>(c.refused);
    bytes += c.bytes;
  }
  const runtime_stats stats = p.scheduler();
  if (places > 0)
    r.set("lots_full_percent", 100 * pushed / places)
        .set("without_room_percent", 100 * refused / (pushed + refused))
        .set("channel_bytes", static_cast<double>(bytes));
  r.set("memory_bytes", static_cast<double>(stats.memory))
      .check(stats.rejected == 0, grouped(stats.rejected) + " elements found no task memory")
      .check(stats.failed == 0, grouped(stats.failed) + " elements failed")
      .check(stats.memory <= o.runtime.memory_limit, "task memory is above its limit");
  s.out.add(r);
  return r;
}

double fib(session& s, const std::string& what, channels::program& p,
           const channels::program_options& o, std::uint32_t n, double beside = 0,
           const char* beside_what = "") {
  std::uint64_t got = 0;
  const std::string name = "fib(" + std::to_string(n) + ") " + what;
  const samples us =
      s.repeat(name, {1, s.sized(7u, 3u), 4.0}, [&] { return timed([&] { got = p.run(n); }); });
  row r(name);
  r.rate(us, "calls", static_cast<double>(recursion::fib_calls(n)))
      .check(got == recursion::fib_number(n), "it is not " + grouped(recursion::fib_number(n)));
  if (!p.channels().empty()) r.set("places", o.capacity);
  if (beside != 0) r.baseline(beside_what, "calls_per_s", beside);
  finish(s, r, p, o);
  return r.value("calls_per_s");
}

void numbers(session& s) {
  const std::uint32_t n = s.sized(27u, 10u);
  const auto plain = with(s, 64);
  auto spawned = channels::make_spawned_fib(s.where, plain);
  const double rate = fib(s, "as tasks that start tasks", *spawned, plain, n);
  for (const std::uint32_t capacity :
       {64u, 1u << 10, 1u << 13, s.sized(1u << 16, 1u << 14), s.sized(1u << 20, 1u << 15)}) {
    const auto o = with(s, capacity);
    auto p = channels::make_fib(s.where, o);
    fib(s, "through a channel of " + grouped(capacity), *p, o, n, rate, "tasks that start tasks");
  }
  const auto o = with(s, s.sized(1u << 20, 1u << 14), reserve_by::lane);
  auto p = channels::make_fib(s.where, o);
  fib(s, "through a channel, lanes push one by one", *p, o, n);
}

void boards(session& s) {
  const std::uint32_t n = s.sized(14u, 7u), base = s.sized(6u, 3u);
  double one_by_one = 0;
  for (const reserve_by by : {reserve_by::lane, reserve_by::warp}) {
    const auto o = with(s, s.sized(1u << 20, 1u << 12), by);
    auto p = channels::make_queens(s.where, o, base);
    std::uint64_t got = 0;
    const std::string name =
        std::to_string(n) + " queens, two functions, " +
        (by == reserve_by::warp ? "lanes push together" : "lanes push one by one");
    const samples us =
        s.repeat(name, {1, s.sized(7u, 3u), 4.0}, [&] { return timed([&] { got = p->run(n); }); });
    row r(name);
    r.rate(us, "solutions", static_cast<double>(recursion::queens_number(n)))
        .check(got == recursion::queens_number(n),
               "there are " + grouped(recursion::queens_number(n)) + ", not " + grouped(got));
    if (by == reserve_by::lane)
      one_by_one = r.value("solutions_per_s");
    else
      r.baseline("lanes that push one by one", "solutions_per_s", one_by_one);
    finish(s, r, *p, o);
  }
}

void relays(session& s) {
  const auto o = with(s, 64);
  auto p = channels::make_relay(s.where, o);
  const std::uint32_t hops = s.sized(2000u, 200u);
  std::uint64_t got = 0;
  const std::string name = "one element, from channel to channel";
  const samples us = s.repeat(name, {1, s.sized(11u, 3u), 4.0},
                              [&] { return timed([&] { got = p->run(hops); }) / hops; });
  row r(name);
  r.latency(us).check(got == hops, grouped(got) + " steps were taken, not " + grouped(hops));
  if (s.gpu()) r.at_most("p50_us", 1.2);
  finish(s, r, *p, o);
}

/// Where direct and indirect aggregation cross, by the number of channels that elements go to.
void scatters(session& s) {
  const std::uint32_t n = s.sized(1u << 24, 1u << 12);
  const std::uint64_t sum = std::uint64_t{n} * (n - 1) / 2;
  for (const std::uint32_t targets : {1u, 2u, 4u, 8u, 16u, 32u, 60u}) {
    double direct = 0;
    for (const aggregation how : {aggregation::direct, aggregation::indirect}) {
      const auto o = with(s, s.sized(1u << 20, 1u << 10));
      auto p = channels::make_scatter(s.where, o, targets, how);
      std::uint64_t got = 0;
      const std::string name = "elements of 4 bytes to " + std::to_string(targets) + " channels, " +
                               (how == aggregation::direct ? "direct" : "indirect");
      const samples us = s.repeat(name, {1, s.sized(7u, 2u), 3.0},
                                  [&] { return timed([&] { got = p->run(n); }); });
      row r(name);
      r.rate(us, "elements", n)
          .set("channels", targets)
          .check(got == sum, "elements were lost, or served twice");
      if (s.gpu()) r.at_least("elements_per_s", 4e9);
      if (how == aggregation::direct)
        direct = r.value("elements_per_s");
      else
        r.baseline("collected by warps", "elements_per_s", direct);
      finish(s, r, *p, o);
    }
  }
}

}  // namespace

void bench_channels(session& s) {
  exchanges(s);
  relays(s);
  numbers(s);
  boards(s);
  scatters(s);
}

}  // namespace grosr::tool
