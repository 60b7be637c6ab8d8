// `grosr bench chain`: tasks that each start the next one. Nothing runs beside a chain but chains,
// so a hop is all that passes between two tasks that depend on each other.
#include "baselines/chain/relaunched.hpp"
#include "cases/benches.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "limits/limits.hpp"
#include "work/chains.hpp"

namespace grosr::tool {
namespace {

struct species {
  width w;
  const char* name;
  double goal_us;  // a hop
  bool forks = false;
};

/// Chains of one width, walked together; the time of a walk is that of a hop of each.
struct walked {
  samples us;
  runtime_stats stats;
  std::string wrong;
};

walked walk(session& s, const species& k, std::uint32_t count, std::uint32_t hops) {
  // The results outlive the runtime: CUDA frees memory when the kernel has gone.
  simt::buffer<std::uint32_t> results(s.where, simt::space::device, count);
  results.copy_from(std::vector<std::uint32_t>(count));
  const runtime_options o = usual_options(s.where);
  chains all(s.where, k.w, o, k.forks);
  any_runtime& r = all.runtime();
  walked w;
  w.us = s.repeat(std::string("chain: ") + k.name, {1, s.sized(11u, 5u), 5.0}, [&] {
    return timed([&] {
      await(r, all.start(count, hops, results.data()));
      await(r);
    });
  });
  w.stats = settled_stats(r);
  w.wrong = trouble(r, w.stats, o.memory_limit);
  std::vector<std::uint32_t> got(count);
  results.copy_to(got);
  if (w.wrong.empty()) w.wrong = first_wrong(got, [&](std::size_t) { return hops; });
  return w;
}

/// What else could run such a chain, in microseconds a hop.
struct others {
  std::optional<double> graph_node, relaunched;
  double launch = 0, barrier = 0, between_sms = 0, in_warp = 0;
  std::string wrong;
};

others measure_others(session& s, std::uint32_t hops) {
  others o;
  progress shown("chain: other ways", 6);
  const auto step = [&] { shown.next(); };
  o.in_warp = limits::hop_in_warp(s.where, s.sized(200'000u, 2'000u)).number, step();
  o.between_sms = limits::hop(s.where, s.sized(20'000u, 500u)).number / 2, step();
  o.barrier = limits::grid_barrier(s.where, s.sized(20'000u, 200u)).number, step();
  o.launch = limits::launch_only(s.where, s.sized(20'000u, 200u)).number, step();
  if (auto f = limits::graph_node(s.where, s.sized(std::min(hops, 20'000u), 10u)))
    o.graph_node = f->number;
  step();
  if (auto c = relaunched_chain::make(s.where)) {
    c->run(100);
    std::uint32_t ran = 0;
    const samples us = s.repeat("chain: a graph that launches itself", {1, 5, 5.0},
                                [&] { return timed([&] { ran = c->run(hops); }); });
    o.relaunched = us.median() / hops;
    if (ran != hops) o.wrong = "the graph that launches itself ran " + grouped(ran) + " times";
  }
  step();
  s.out.limit("hop_in_warp_us", o.in_warp);
  s.out.limit("hop_between_sms_us", o.between_sms);
  return o;
}

void one_chain(session& s, const species& k, std::uint32_t hops, const others& o) {
  const walked w = walk(s, k, 1, hops);
  row one(std::string("one chain of ") + grouped(hops) + " " + k.name);
  one.set("hop_us", w.us.median() / hops)
      .time(w.us)
      .limit("from lane to lane of a warp, through block-shared memory", "hop_us", o.in_warp)
      .limit("between two SMs, one way", "hop_us", o.between_sms)
      .baseline("launches on a stream, waited for once", "hop_us", o.launch)
      .baseline("a grid barrier of a cooperative kernel", "hop_us", o.barrier)
      .check(w.wrong.empty(), w.wrong)
      .check(o.wrong.empty(), o.wrong);
  if (o.graph_node) one.baseline("a node of a CUDA graph", "hop_us", *o.graph_node);
  if (o.relaunched) one.baseline("a CUDA graph that launches itself", "hop_us", *o.relaunched);
  if (s.gpu()) {
    one.at_most("hop_us", k.goal_us);
    if (o.graph_node && !k.forks)
      one.at_most("hop_us", 0.6 * *o.graph_node, "0.6 of a node of a CUDA graph");
  }
  s.out.add(one);
}

void many_chains(session& s, const species& k, std::uint32_t count, std::uint32_t hops) {
  const walked w = walk(s, k, count, hops);
  row many(grouped(count) + " chains of " + grouped(hops) + " " + k.name);
  many.rate(w.us, "hops", static_cast<double>(count) * hops)
      .set("stolen", static_cast<double>(w.stats.stolen))
      .check(w.wrong.empty(), w.wrong);
  if (s.gpu()) many.at_least("hops_per_s", 2e9);
  s.out.add(many);
}

}  // namespace

void bench_chain(session& s) {
  const auto hops = static_cast<std::uint32_t>(s.number(0).value_or(s.sized(20'000u, 200u)));
  const others o = measure_others(s, hops);
  const species lane{width::lane, "lane tasks", 0.45};
  one_chain(s, lane, hops, o);
  one_chain(s, {width::warp, "warp tasks", 0.45}, hops, o);
  one_chain(s, {width::block, "block tasks", 0.9}, hops, o);
  one_chain(s, {width::lane, "forks of one child, each joined", 1.2, true}, hops, o);
  many_chains(s, lane, s.sized(1'000u, 50u), std::max(1u, hops / 20));
}

}  // namespace grosr::tool
