// `grosr bench pairs`. A pair is two stages, the second needs the first:
// data[i] = 2 * i, then data[i] += 1. Baseline: two launches and two waits. GROSR: the host submits
// the first stage, and the device starts the second.
#include "cases/benches.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "limits/kernels.hpp"
#include "work/basic.hpp"

namespace grosr::tool {
namespace {

std::uint32_t paired(std::size_t i) { return static_cast<std::uint32_t>(2 * i + 1); }

struct field {
  simt::buffer<std::uint32_t> data;
  explicit field(const session& s, std::uint32_t n) : data(s.where, simt::space::device, n) {}

  void clear() { data.copy_from(std::vector<std::uint32_t>(data.size(), 0xdeadbeef)); }
  std::string wrong(std::size_t n) const {
    std::vector<std::uint32_t> got(n);
    data.copy_to(got);
    return first_wrong(got, paired);
  }
};

/// Microseconds a pair by launches. A host that is slow at them does fewer pairs.
struct baseline {
  samples us_per_pair;
  std::uint32_t pairs;
  std::string wrong;
};

baseline launch_pairs(const session& s, std::uint32_t n) {
  const std::uint32_t pairs = std::min(n, s.sized(50'000u, 200u));
  field f(s, pairs);
  launcher kernels(s.where);
  const auto pair = [&](std::uint32_t i) {
    kernels.first_stage(f.data.data(), i);
    kernels.wait();
    kernels.second_stage(f.data.data(), i);
    kernels.wait();
  };
  baseline b{{}, pairs, ""};
  b.us_per_pair = s.repeat("pairs: launches", {1, 3, 3.0}, [&] {
    f.clear();
    const double us = timed([&] {
      progress shown("pairs: launches", pairs);
      for (std::uint32_t i = 0; i < pairs; ++i) {
        pair(i);
        if (i % 256 == 0) shown.at(i);
      }
    });
    if (b.wrong.empty()) b.wrong = f.wrong(pairs);
    return us / pairs;
  });
  return b;
}

void many_pairs(session& s, std::uint32_t n, double bus_gb_per_s) {
  const baseline base = launch_pairs(s, n);
  row launches("N = " + grouped(n) + ": two launches, two waits a pair");
  launches.set("pair_us", base.us_per_pair.median())
      .set("min_us", base.us_per_pair.min())
      .set("max_us", base.us_per_pair.max())
      .check(base.wrong.empty(), base.wrong);
  if (base.pairs < n)
    launches.note("measured with " + grouped(base.pairs) + " pairs, which is what a pair costs");
  s.out.add(launches);

  field f(s, n);
  std::vector<first_stage> tasks(n);
  for (std::uint32_t i = 0; i < n; ++i) tasks[i] = {f.data.data(), i, 0};
  const runtime_options o = usual_options(s.where);
  auto r = make_basic_runtime(s.where, o);
  std::string wrong;
  const std::string name = "N = " + grouped(n) + ": GROSR";
  const samples us = s.repeat("pairs " + name, {2, 21, 5.0}, [&] {
    f.clear();
    const double once = timed([&] {
      submit_in_pieces(*r, tasks);
      await(*r);
    });
    if (wrong.empty()) wrong = f.wrong(n);
    return once;
  });
  if (wrong.empty()) wrong = trouble(*r, settled_stats(*r), o.memory_limit);
  row grosr(name);
  grosr.set("pair_us", us.median() / n)
      .rate(us, "pairs", n)
      .set("speedup_x", base.us_per_pair.median() * n / us.median())
      .limit("the bus, 16 bytes a pair", "pairs_per_s", bus_gb_per_s * 1e9 / 16)
      .baseline("two launches, two waits", "pair_us", base.us_per_pair.median())
      .check(wrong.empty(), wrong);
  if (n == 50'000) grosr.at_least("speedup_x", 300, "less time a pair than launches");
  s.out.add(grosr);
}

void one_pair_in_flight(session& s, double ping_pong) {
  const std::uint32_t n = s.sized(10'000u, 200u);
  field f(s, n);
  f.clear();
  auto r = make_basic_runtime(s.where, usual_options(s.where));
  std::uint32_t i = 0;
  const samples us = s.repeat("pairs: one pair in flight", {0, n, 10.0}, [&] {
    const std::uint32_t mine = i++ % n;
    return timed([&] {
      r->submit(first_stage{f.data.data(), mine, 0});
      r->wait_all();
    });
  });
  const std::string wrong = f.wrong(std::min(i, n));
  row one("one pair in flight: GROSR");
  one.latency(us)
      .check(wrong.empty(), wrong)
      .limit("ping-pong p50", "p50_us", ping_pong)
      .at_most("p50_us", 2.2 * ping_pong, "2.2x the ping-pong");
  s.out.add(one);
}

}  // namespace

void bench_pairs(session& s) {
  const double ping_pong = ping_pong_limit(s);
  const double bus = bus_limit(s);
  one_pair_in_flight(s, ping_pong);
  std::vector<std::uint32_t> counts = s.gpu()
                                          ? std::vector<std::uint32_t>{100, 1'000, 10'000, 50'000}
                                          : std::vector<std::uint32_t>{100, 1'000};
  if (auto n = s.number(0)) counts = {static_cast<std::uint32_t>(*n)};
  for (std::uint32_t n : counts) many_pairs(s, n, bus);
}

}  // namespace grosr::tool
