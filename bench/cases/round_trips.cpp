#include "cases/round_trips.hpp"

#include <memory>

#include "cases/benches.hpp"
#include "grosr/simt/buffer.hpp"
#include "limits/kernels.hpp"
#include "limits/limits.hpp"
#include "work/basic.hpp"

namespace grosr::tool {
namespace {

// Every sample writes a place of its own, so that all of them can be checked afterwards.
class bed {
 public:
  bed(session& s, const runtime_options& options)
      : s_(s),
        results_(s.where, simt::space::device, places),
        runtime_(make_basic_runtime(s.where, options)) {}

  any_runtime& runtime() { return *runtime_; }

  /// Measures `once(index)`; checks that result i is expected(i). A warm-up comes first.
  template <class Once, class Expected>
  row measure(const char* name, unsigned n, Once&& once, Expected&& expected) {
    std::uint32_t next = 0;
    results_.copy_from(std::vector<std::uint32_t>(places, untouched));
    const samples us = s_.repeat(name, {warm, n, s_.sized(20.0, 3.0)}, [&] {
      const std::uint32_t i = next++ % places;
      return timed([&] { once(results_.data(), i); });
    });
    runtime_->wait_all();
    std::vector<std::uint32_t> got(std::min(next, places));
    results_.copy_to(got);
    row r(name);
    r.latency(us);
    const std::string wrong = first_wrong(got, expected);
    return r.check(wrong.empty(), wrong);
  }

  static constexpr unsigned warm = 20;

 private:
  static constexpr std::uint32_t places = 1u << 16, untouched = 0xffffffffu;
  session& s_;
  simt::buffer<std::uint32_t> results_;
  std::unique_ptr<any_runtime> runtime_;
};

std::uint32_t doubled(std::size_t i) { return static_cast<std::uint32_t>(2 * i); }
std::uint32_t paired(std::size_t i) { return static_cast<std::uint32_t>(2 * i + 1); }

}  // namespace

launched_round_trips measure_launched_round_trips(session& s) {
  const unsigned n = s.sized(5'000u, 100u);
  simt::buffer<std::uint32_t> word(s.where, simt::space::device, 1);
  launcher kernels(s.where);
  const samples pair = s.repeat("two launches, one wait", {20, n, 3.0}, [&] {
    return timed([&] {
      kernels.first_stage(word.data(), 0);
      kernels.second_stage(word.data(), 0);
      kernels.wait();
    });
  });
  std::vector<std::uint32_t> got(1);
  word.copy_to(got);
  return {limits::launch_and_wait(s.where, n).us.median(), pair.median(), first_wrong(got, paired)};
}

void round_trip_rows(session& s, double ping_pong, round_trip_goal ticket,
                     round_trip_goal pair_goal,
                     const std::optional<launched_round_trips>& launched) {
  bed b(s, usual_options(s.where));
  any_runtime& r = b.runtime();
  const unsigned n = s.sized(20'000u, 300u);
  row one = b.measure(
      "one task, its ticket waited for", n,
      [&](std::uint32_t* to, std::uint32_t i) {
        r.submit(store{to, i, i}).wait();
      },
      doubled);
  one.limit("ping-pong p50", "p50_us", ping_pong)
      .at_most("p50_us", ticket.times * ping_pong, ticket.reason)
      .at_most("p99_us", 2 * one.value("p50_us"), "2x p50");
  if (launched) one.baseline("a launch and a wait", "p50_us", launched->one);
  s.out.add(one);
  row all = b.measure(
      "one task, wait_all", n,
      [&](std::uint32_t* to, std::uint32_t i) {
        r.submit(store{to, i, i});
        r.wait_all();
      },
      doubled);
  s.out.add(all.limit("ping-pong p50", "p50_us", ping_pong));
  row pair = b.measure(
      "a dependent pair, wait_all", n,
      [&](std::uint32_t* to, std::uint32_t i) {
        r.submit(first_stage{to, i, 0});
        r.wait_all();
      },
      paired);
  pair.limit("ping-pong p50", "p50_us", ping_pong)
      .at_most("p50_us", pair_goal.times * ping_pong, pair_goal.reason);
  if (launched)
    pair.baseline("two launches, one wait", "p50_us", launched->pair)
        .check(launched->wrong.empty(), launched->wrong);
  s.out.add(pair);
}

}  // namespace grosr::tool
