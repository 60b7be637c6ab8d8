// Which lane runs next. Two schedules:
//
// fair    no seed. Warps take turns; in its visit a warp runs its runnable lanes, lowest first,
//         until all rest or the visit's quota is used up, and then each polling lane once. Those
//         whom a barrier lets go on later are visited again before the round is over, up to 16
//         times, while nobody polls: a worker sleeps only when all of its lanes rest.
// seeded  every choice is drawn from the seed, in one of four styles that the seed chooses too:
//         - uniform: any lane, after 1 to 8 schedule points. Short races between many lanes.
//         - bursts: mostly stays in one warp. Races between lanes of a warp.
//         - long_runs: switches seldom. A lane falls far behind the others.
//         - priorities: a strict order of lanes with few changes. Bugs that need few switches, but
//           the right ones (Burckhardt et al., "A Randomized Scheduler with Probabilistic
//           Guarantees of Finding Bugs", 2010).
#include "simt/host_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "grosr/simt/error.hpp"

namespace grosr::simt::host {
namespace {

constexpr unsigned visit_quota = 512;  // lane switches
constexpr unsigned most_passes = 16;   // over all warps, for one round

/// std::popcount() calls a function of the compiler's library where the processor may have no such
/// instruction, which was a tenth of all time under seeded schedules.
unsigned popcount(std::uint32_t m) {
  m -= m >> 1 & 0x55555555u;
  m = (m & 0x33333333u) + (m >> 2 & 0x33333333u);
  return ((m + (m >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}

bool same_place(site a, site b) { return a.file == b.file && a.line == b.line; }

}  // namespace

lane* worker::activate(warp& w, std::uint32_t warp::*set, unsigned number) {
  lane& l = w.lanes[number];
  if ((w.unstarted & l.bit()) != 0) {
    if (stacks.count() == 0) stack_pool::instance().take(stacks, warp_size);
    if (!l.fiber.start(stacks, sanitizer::has_tsan() ? used_stacks : stacks, lane_main, &l)) {
      home.fail(std::make_exception_ptr(error(
          errc::out_of_memory,
          fmt::format(
              "a launch of {} blocks of {} lanes needs another stack of {} KiB, and the system "
              "gives none; launch fewer lanes, lower GROSR_HOST_STACK, or raise vm.max_map_count",
              home.shape.blocks, home.shape.warps * warp_size, stacks.stack_size() / 1024))));
      return nullptr;
    }
    w.unstarted &= ~l.bit();
  }
  w.*set &= ~l.bit();
  return active = &l;
}

lane* worker::pick() {
  if (cancelling || home.failed.load(std::memory_order_relaxed)) return nullptr;
  return seeded ? pick_seeded() : pick_fair();
}

void worker::begin_visit() {
  quota = visit_quota;
  to_poll = passes == 0 ? warps[cursor]->polling : 0;
}

bool worker::can_go_on() const {
  return std::any_of(warps.begin(), warps.end(), [](const warp* w) { return w->runnable != 0; });
}

lane* worker::pick_fair() {
  for (;;) {
    if (warps.empty()) return nullptr;
    warp& w = *warps[cursor];
    if (w.runnable != 0 && quota > 0) {
      --quota;
      return activate(w, &warp::runnable, static_cast<unsigned>(std::countr_zero(w.runnable)));
    }
    if (const std::uint32_t due = to_poll & w.polling; due != 0) {
      const auto number = static_cast<unsigned>(std::countr_zero(due));
      to_poll &= ~(1u << number);
      return activate(w, &warp::polling, number);
    }
    if (w.runnable != 0) {
      progress = true;
    } else if (settle(w)) {
      continue;
    } else if (check_stuck(w)) {
      return nullptr;
    }
    const bool pass_over = ++cursor == warps.size();
    if (pass_over) cursor = 0;
    const bool goes_on = pass_over && !progress && can_go_on() && ++passes < most_passes;
    if (pass_over && !goes_on) {
      progress = progress || passes == most_passes;
      passes = 0;
    }
    begin_visit();
    if (!pass_over || goes_on) continue;
    const bool thread_wanted =
        some_block_over || next_block < home.shape.blocks || home.poll_limit || asked();
    if (!progress || thread_wanted) return nullptr;
    progress = false;
    fruitless_rounds = 0;
  }
}

lane* worker::pick_seeded() {
  if (active != nullptr) {
    warp& w = *active->home;
    settle(w);
    if (check_stuck(w)) return nullptr;
  }
  if (seeded->round_is_over(*this)) return nullptr;
  lane* next = seeded->choose(*this);
  if (next == nullptr) return nullptr;
  warp& w = *next->home;
  return activate(w, (w.runnable & next->bit()) != 0 ? &warp::runnable : &warp::polling,
                  next->where.lane);
}

bool worker::settle(warp& w) {
  if (w.converging == 0 || w.runnable != 0 || (w.polling & ~w.polled) != 0) return false;
  std::uint32_t todo = std::exchange(w.converging, 0);
  while (todo != 0) {
    const site first = w.lanes[std::countr_zero(todo)].at;
    std::uint32_t members = 0;
    for (std::uint32_t m = todo; m != 0; m &= m - 1) {
      if (same_place(w.lanes[std::countr_zero(m)].at, first)) members |= m & -m;
    }
    todo &= ~members;
    if (seeded && seeded->one_in(4)) {  // any subset that contains the caller is a legal answer
      const std::uint32_t part = members & static_cast<std::uint32_t>(seeded->draw());
      if (part != 0) form_group(w, part);
      members &= ~part;
    }
    form_group(w, members);
  }
  return true;
}

void worker::form_group(warp& w, std::uint32_t members) {
  w.runnable |= members;
  for (std::uint32_t m = members; m != 0; m &= m - 1) w.lanes[std::countr_zero(m)].result = members;
}

bool worker::check_stuck(warp& w) {
  // A collective completes only through lanes of its own warp, so a warp at rest stays at rest.
  if (w.collecting == 0 || (w.runnable | w.polling | w.converging) != 0) return false;
  const position& p = w.lanes[0].where;
  home.fail_stuck(fmt::format("deadlock: no lane of block {} warp {} can go on", p.block, p.warp));
  return true;
}

seeded_schedule::seeded_schedule(std::uint64_t seed) : state_(mixed(seed + 0x9e3779b97f4a7c15u)) {
  style_ = static_cast<style>(below(4));
  gap_ = std::uint64_t{1} << (style_ == style::priorities  ? 1 + below(9)
                              : style_ == style::long_runs ? 3 + below(4)
                                                           : below(4));
  steps_to_change_ = 1 + below(2 * gap_);
}

bool seeded_schedule::preempts(lane& active) {
  if (style_ != style::priorities) return one_in(gap_);
  if (--steps_to_change_ != 0) return false;
  steps_to_change_ = 1 + below(2 * gap_);
  lowest_priority(active);
  return true;
}

lane* seeded_schedule::nth(worker& w, std::uint32_t warp::*set, std::uint64_t n) {
  for (warp* candidate : w.warps) {
    std::uint32_t m = candidate->*set;
    const unsigned here = popcount(m);
    if (n >= here) {
      n -= here;
      continue;
    }
    for (; n > 0; --n) m &= m - 1;
    return &candidate->lanes[std::countr_zero(m)];
  }
  return nullptr;
}

lane* seeded_schedule::highest(worker& w) {
  lane* best = nullptr;
  for (warp* candidate : w.warps) {
    for (std::uint32_t m = candidate->runnable; m != 0; m &= m - 1) {
      lane& l = candidate->lanes[std::countr_zero(m)];
      if (best == nullptr || l.priority > best->priority) best = &l;
    }
  }
  return best;
}

lane* seeded_schedule::choose(worker& w) {
  std::uint64_t runnable = 0, polling = 0;
  for (const warp* each : w.warps) {
    runnable += popcount(each->runnable);
    polling += popcount(each->polling);
  }
  if (runnable == 0 && polling == 0) return nullptr;
  const std::uint64_t odds = style_ == style::priorities ? 64 : 4;  // nobody waits for ever
  if (runnable == 0 || (polling != 0 && one_in(odds)))
    return nth(w, &warp::polling, below(polling));
  if (style_ == style::priorities && !one_in(64)) return highest(w);
  if (style_ == style::bursts && w.active != nullptr && !one_in(8)) {
    const std::uint32_t here = w.active->home->runnable;
    if (here != 0) {
      std::uint32_t m = here;
      for (auto n = below(popcount(here)); n > 0; --n) m &= m - 1;
      return &w.active->home->lanes[std::countr_zero(m)];
    }
  }
  return nth(w, &warp::runnable, below(runnable));
}

bool seeded_schedule::round_is_over(worker& w) {
  if (pauses < w.live) return false;
  pauses = 0;
  bool all_rested = !w.progress;
  for (warp* each : w.warps) {
    all_rested = all_rested && ((each->runnable | each->polling) & ~each->rested) == 0;
  }
  if (!w.progress && !all_rested) return false;
  for (warp* each : w.warps) each->rested = 0;
  return true;
}

}  // namespace grosr::simt::host
