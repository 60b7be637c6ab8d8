// Tour: recursion by fork and join.
#include "cli/text.hpp"
#include "recursion/fib.hpp"
#include "tour/parts.hpp"

namespace grosr::tool {

void tour_join(session& s, const std::string&) {
  const std::uint32_t n = s.sized(30u, 14u);
  runtime_options o;
  if (s.gpu()) o.memory_limit = std::size_t{1} << 30;
  recursion::fib program(s.where, o);
  std::uint64_t got = 0;
  const samples us =
      s.repeat("fork-join", {1, 5, 2.0}, [&] { return timed([&] { got = program.run(n); }); });
  const auto calls = static_cast<double>(recursion::fib_calls(n));
  std::uint64_t on_cpu = 0;
  const double cpu_us = timed([&] { on_cpu = recursion::fib_on_host(n); });
  row line("fork-join");
  line.set("calls", calls)
      .set("calls_per_s", calls * 1e6 / us.median())
      .baseline("one CPU thread", "calls_per_s", calls * 1e6 / cpu_us)
      .check(got == on_cpu,
             "fib(" + std::to_string(n) + ") is " + grouped(on_cpu) + ", not " + grouped(got));
  s.out.add(line);
}

}  // namespace grosr::tool
