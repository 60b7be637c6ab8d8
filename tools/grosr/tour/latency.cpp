// Tour: one task, there and back.
#include "grosr/simt/buffer.hpp"
#include "limits/limits.hpp"
#include "tour/parts.hpp"
#include "work/basic.hpp"

namespace grosr::tool {

void tour_latency(session& s, const std::string&) {
  const limits::times ping_pong = limits::ping_pong(s.where, s.sized(5000u, 200u));
  simt::buffer<std::uint32_t> result(s.where, simt::space::pinned, 1);
  auto r = make_basic_runtime(s.where, usual_options(s.where));
  std::uint32_t i = 0;
  std::string wrong;
  const samples us = s.repeat("latency", {20, s.sized(10'000u, 200u), 2.0}, [&] {
    ++i;
    const double once = timed([&] { r->submit(store{result.data(), 0, i}).wait(); });
    if (result[0] != 2 * i && wrong.empty()) wrong = "a task completed without having run";
    return once;
  });
  row line("latency");
  line.set("p50_us", us.median())
      .set("p99_us", us.quantile(0.99))
      .limit("ping-pong", "p50_us", ping_pong.us.median())
      .check(wrong.empty(), wrong);
  s.out.add(line);
}

}  // namespace grosr::tool
