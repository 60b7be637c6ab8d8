// The text of a deadlock: who waits where, for whom. Lanes that wait alike share a line.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "grosr/simt/error.hpp"
#include "simt/host_state.hpp"

namespace grosr::simt::host {
namespace {

constexpr std::size_t max_lines = 64;

bool waits_alike(const lane& a, const lane& b) {
  return a.in == b.in && a.at.file == b.at.file && a.at.line == b.at.line &&
         (a.in == call::poll ? a.why == b.why : a.in > call::match_any || a.mask == b.mask);
}

// "lanes 0-3 of warp 0; lane 4 of warp 2": who has not come to the block's barrier.
std::string absent(const block& b) {
  std::string text;
  for (unsigned i = 0; i < b.warp_count; ++i) {
    const warp& w = b.warps[i];
    const std::uint32_t missing = ~(w.ended | w.at_barrier);
    if (missing == 0) continue;
    text += fmt::format("{}{} of warp {}", text.empty() ? "" : "; ", lane_set(missing), i);
  }
  return text;
}

std::string wait_of(const warp& w, const lane& l) {
  switch (l.in) {
    case call::poll:
      return fmt::format("polls for \"{}\" at {}", l.why != nullptr ? l.why : "?", place(l.at));
    case call::active_mask:
      return fmt::format("active_mask() at {}", place(l.at));
    case call::sync_block:
      return fmt::format("sync_block() at {}, waits for {}", place(l.at), absent(*w.home));
    default: {
      std::uint32_t missing = l.mask;
      for (std::uint32_t m = w.collecting & l.mask; m != 0; m &= m - 1) {
        if (waits_alike(w.lanes[std::countr_zero(m)], l) ||
            w.lanes[std::countr_zero(m)].mask == l.mask) {
          missing &= ~(m & -m);
        }
      }
      std::string text = fmt::format("{}(mask {:#010x}) at {}, waits for {}", name_of(l.in), l.mask,
                                     place(l.at), lane_set(missing));
      if ((missing & w.ended) != 0) text += fmt::format(" ({} ended)", lane_set(missing & w.ended));
      return text;
    }
  }
}

}  // namespace

std::string lane_set(std::uint32_t mask) {
  std::string text;
  for (unsigned i = 0; i < warp_size; ++i) {
    if ((mask >> i & 1u) == 0) continue;
    unsigned last = i;
    while (last + 1 < warp_size && (mask >> (last + 1) & 1u) != 0) ++last;
    if (!text.empty()) text += ',';
    text += last == i ? fmt::format("{}", i) : fmt::format("{}-{}", i, last);
    i = last;
  }
  return (std::popcount(mask) == 1 ? "lane " : "lanes ") + text;
}

std::string place(site at) {
  return fmt::format("{}:{}", at.file != nullptr ? at.file : "?", at.line);
}

const char* name_of(call c) {
  switch (c) {
    case call::sync_warp:
      return "sync_warp";
    case call::sync_task:
      return "context.sync";
    case call::ballot:
      return "ballot";
    case call::shuffle:
      return "shuffle";
    case call::match_any:
      return "match_any";
    case call::active_mask:
      return "active_mask";
    case call::sync_block:
      return "sync_block";
    case call::poll:
      return "poll";
  }
  return "?";
}

void worker::describe() {
  if (home.stuck.empty()) return;
  std::lock_guard lock(home.mutex);
  for (const auto& b : blocks) {
    for (unsigned i = 0; i < b->warp_count; ++i) {
      const warp& w = b->warps[i];
      std::uint32_t todo = w.collecting | w.at_barrier | w.converging | w.polling;
      while (todo != 0) {
        const lane& l = w.lanes[std::countr_zero(todo)];
        std::uint32_t alike = 0;
        for (std::uint32_t m = todo; m != 0; m &= m - 1) {
          if (waits_alike(w.lanes[std::countr_zero(m)], l)) alike |= m & -m;
        }
        todo &= ~alike;
        home.lines.emplace_back(b->number, fmt::format("block {} warp {} {}: {}", b->number, i,
                                                       lane_set(alike), wait_of(w, l)));
      }
    }
  }
}

bool worker::asked() const {
  return home.questions != nullptr &&
         home.questions->asked.load(std::memory_order_relaxed) != answered;
}

void worker::answer() {
  inquiry& q = *home.questions;
  std::lock_guard lock(q.mutex);
  answered = q.asked.load();
  for (const warp* w : warps)
    for (std::uint32_t m = w->collecting | w->at_barrier | w->converging | w->polling; m != 0;
         m &= m - 1) {
      const lane& l = w->lanes[std::countr_zero(m)];
      if (l.doing != nullptr) ++q.lanes[fmt::format("{} {}", l.doing, wait_of(*w, l))];
    }
  ++q.answers;
  q.answered.notify_all();
}

void launch::throw_failure() {
  if (first) std::rethrow_exception(first);
  std::string text = stuck;
  if (seed) text += fmt::format(" (GROSR_SEED={} replays this)", *seed);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < lines.size() && i < max_lines; ++i) text += "\n  " + lines[i].second;
  if (lines.size() > max_lines) {
    text += fmt::format("\n  and {} more lines like these", lines.size() - max_lines);
  }
  throw error(errc::deadlock, text);
}

}  // namespace grosr::simt::host
