// `grosr bench latency`: how long one task and a dependent pair take from the host and back; what
// it costs to make a runtime, and to have one that is idle.
#include <sys/resource.h>

#include <algorithm>
#include <memory>

#include "cases/benches.hpp"
#include "cli/interrupt.hpp"
#include "grosr/simt/buffer.hpp"
#include "limits/kernels.hpp"
#include "limits/limits.hpp"
#include "work/basic.hpp"

namespace grosr::tool {
namespace {

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

double cpu_percent_over(double seconds) {
  const double before = cpu_seconds();
  const auto began = clock::now();
  interrupt::sleep_for_seconds(seconds);
  return 100 * (cpu_seconds() - before) / (microseconds_since(began) / 1e6);
}

/// What it costs that there is a runtime. First of all: stacks that CUDA has reserved stay so.
void footprint_rows(session& s) {
  const std::size_t before = s.where.properties().memory_free;
  const auto first = make_store_runtime(s.where, {});
  const std::size_t after = s.where.properties().memory_free;
  std::unique_ptr<any_runtime> r;
  const samples us = s.repeat("making a runtime", {2, s.sized(20u, 5u), 2.0}, [&] {
    r.reset();
    return timed([&] { r = make_store_runtime(s.where, {}); });
  });
  row made("a runtime of one task type is made");
  made.time(us)
      .set("device_bytes", static_cast<double>(before - std::min(before, after)))
      .set("pinned_bytes", static_cast<double>(first->stats().host_memory));
  if (s.gpu()) made.at_most("median_us", 5'000).at_most("device_bytes", 64e6);
  s.out.add(made);
}

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

/// The same without a runtime, in microseconds.
struct launched_round_trips {
  double one;   ///< a launch and a wait
  double pair;  ///< two launches, one wait
  std::string wrong;
};

/// Before a runtime is resident.
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

void round_trip_rows(session& s, double ping_pong) {
  const launched_round_trips launched = measure_launched_round_trips(s);
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
      .baseline("a launch and a wait", "p50_us", launched.one)
      .at_most("p50_us", 1.6 * ping_pong, "1.6x the ping-pong")
      .at_most("p99_us", 2 * one.value("p50_us"), "2x p50");
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
      .baseline("two launches, one wait", "p50_us", launched.pair)
      .check(launched.wrong.empty(), launched.wrong)
      .at_most("p50_us", 2.2 * ping_pong, "2.2x the ping-pong");
  s.out.add(pair);
}

void parked_rows(session& s) {
  // Before there is a runtime: a kernel may be loaded only while none is resident.
  const limits::times launch = limits::launch_and_wait(s.where, s.sized(1000u, 100u));
  simt::buffer<std::uint32_t> word(s.where, simt::space::pinned, 1);
  auto owner = make_basic_runtime(s.where, usual_options(s.where));
  any_runtime& r = *owner;
  const samples us = s.repeat("from parked", {3, s.sized(200u, 50u), 3.0}, [&] {
    r.park();
    return timed([&] { r.submit(store{word.data(), 0, 21}).wait(); });
  });
  row from("from parked: one task, its ticket waited for");
  from.latency(us).check(word[0] == 42, "the task did not run");
  from.limit("launch + wait", "p50_us", launch.us.median()).at_most("p50_us", 30);
  r.park();
  s.out.add(from);

  row parked("parked: CPU time of the whole process");
  const bool was_resident = r.resident();
  parked.set("cpu_percent", cpu_percent_over(s.sized(1.0, 0.5)))
      .check(!was_resident && !r.resident(), "the runtime was not parked all the time")
      .at_most("cpu_percent", 1, "1% of a core");
  s.out.add(parked);
}

void idle_rows(session& s) {
  runtime_options o = usual_options(s.where);
  o.idle_timeout = std::chrono::milliseconds(5);
  simt::buffer<std::uint32_t> word(s.where, simt::space::pinned, 1);
  auto r = make_basic_runtime(s.where, o);
  r->submit(store{word.data(), 0, 21}).wait();
  const auto began = clock::now();
  while (r->resident() && microseconds_since(began) < 5e6) interrupt::sleep_for_seconds(0.001);
  row idle("idle time-out of 5 ms: time to leave, then CPU time of the whole process");
  idle.set("leave_ms", microseconds_since(began) / 1e3)
      .check(word[0] == 42, "the task did not run")
      .check(!r->resident(), "the runtime did not leave the device within 5 s");
  idle.set("cpu_percent", cpu_percent_over(s.sized(1.0, 0.5)))
      .at_most("cpu_percent", 1, "1% of a core");
  s.out.add(idle);
}

}  // namespace

void bench_latency(session& s) {
  footprint_rows(s);
  const double ping_pong = ping_pong_limit(s);
  round_trip_rows(s, ping_pong);
  parked_rows(s);
  idle_rows(s);
}

}  // namespace grosr::tool
