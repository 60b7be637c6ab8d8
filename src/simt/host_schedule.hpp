// Seeded schedules: every choice that the warp machine makes, drawn from one number.
#pragma once

#include <cstdint>

#include "simt/host_state.hpp"

namespace grosr::simt::host {

class seeded_schedule {
 public:
  explicit seeded_schedule(std::uint64_t seed);

  std::uint64_t draw() { return mixed(state_ += 0x9e3779b97f4a7c15u); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  std::uint64_t below(std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(draw()) * n) >> 64);
  }

  void first_priority(lane& l) { l.priority = (draw() >> 1) | (std::uint64_t{1} << 62); }
  void lowest_priority(lane& l) { l.priority = --lowest_; }

  /// At a schedule point: whether the active lane lets another go first.
  bool preempts(lane& active);

  /// The lane to run next; null when no lane of the worker can run.
  lane* choose(worker& w);

  /// Told of each pause; true when a round is over: every lane that can run has paused.
  bool round_is_over(worker& w);

  std::uint64_t pauses = 0;  // since the last look at the round

 private:
  enum class style { uniform, bursts, long_runs, priorities };
  static std::uint64_t mixed(std::uint64_t z) {  // splitmix64's output function
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  lane* nth(worker& w, std::uint32_t warp::*set, std::uint64_t n);
  lane* highest(worker& w);

  std::uint64_t state_;
  style style_;
  std::uint64_t gap_;              // schedule points between two preemptions, on average
  std::uint64_t steps_to_change_;  // priorities
  std::uint64_t lowest_ = std::uint64_t{1} << 61;
};

}  // namespace grosr::simt::host
