// `grosr bench streams`: from a kernel of a stream to tasks (submit_after) and back
// (ticket::record), beside an event between two streams. Times are by the device's clock, which
// ticks once a microsecond on some GPUs.
#include "cases/benches.hpp"
#include "cases/streams_work.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

using namespace std::chrono_literals;

struct measured {
  samples to_task, to_kernel, between;
};

measured measure(session& s, const runtime_options& o, std::chrono::microseconds held) {
  stream_hops hops(s.where, o);
  std::vector<double> between, to_task, to_kernel;
  hops.hop(held);
  hops.between_streams_us(held);
  s.repeat("streams", {0, s.sized(200u, 10u), 5.0}, [&] {
    between.push_back(hops.between_streams_us(held));
    const stream_hops::times t = hops.hop(held);
    to_task.push_back(t.to_task_us);
    to_kernel.push_back(t.to_kernel_us);
    return t.to_task_us;
  });
  return {samples(to_task), samples(to_kernel), samples(between)};
}

void add(session& s, const std::string& name, const samples& what, const measured& beside) {
  row r(name);
  r.latency(what)
      .baseline(s.gpu() ? "a kernel to one of another stream, by an event"
                        : "a kernel to the next one of its stream",
                "p50_us", beside.between.median())
      .check(what.min() > 0, "a clock went backwards");
  s.out.add(r);
}

}  // namespace

void bench_streams(session& s) {
  runtime_options o = usual_options(s.where);
  o.idle_timeout = 0us;
  {
    const measured m = measure(s, o, 200us);
    add(s, "a kernel to a task, held for 0.2 ms", m.to_task, m);
    add(s, "that task to a kernel", m.to_kernel, m);
  }
  {
    const measured m = measure(s, o, 20ms);
    add(s, "a kernel to a task, held for 20 ms", m.to_task, m);
    add(s, "that task to a kernel, held for 20 ms", m.to_kernel, m);
  }
}

}  // namespace grosr::tool
