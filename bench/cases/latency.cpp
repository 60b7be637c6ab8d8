// `grosr bench latency`: how long one task takes, from the host and back; and a runtime to make.
#include <sys/resource.h>

#include <algorithm>
#include <memory>

#include "cases/benches.hpp"
#include "cases/round_trips.hpp"
#include "cli/interrupt.hpp"
#include "grosr/simt/buffer.hpp"
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
  round_trip_rows(s, ping_pong, {1.5, "1.5x the ping-pong"}, {2, "2x the ping-pong"});
  parked_rows(s);
  idle_rows(s);
}

}  // namespace grosr::tool
