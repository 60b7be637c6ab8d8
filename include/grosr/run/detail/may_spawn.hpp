// Whether anything in a program of task types spawns, which the host knows before it takes memory:
// what a compiler makes of the task's code for the device it makes for the host too.
#pragma once

#include "grosr/simt/config.hpp"

namespace grosr::run {

template <class Policy, class... Tasks>
struct spawning {
  // Set before main() by what is initialized below, which is there where its user is compiled.
  static inline bool known = false, found = false;
};

template <class Policy, class... Tasks>
inline const bool spawning_is_known = spawning<Policy, Tasks...>::known = true;
template <class Policy, class... Tasks>
inline const bool spawning_is_found = spawning<Policy, Tasks...>::found = true;

/// Called by code that takes pool batches for what tasks start. That it is compiled counts, not
/// that it runs.
template <class Policy, class... Tasks>
GROSR_DEVICE void note_spawn_code() {
  if constexpr (!simt::on_gpu()) static_cast<void>(spawning_is_found<Policy, Tasks...>);
}

/// False where no task type of the program has code that spawns. A runtime that is made before
/// main() may be told that it has.
template <class Policy, class... Tasks>
bool may_spawn() {
  static_cast<void>(spawning_is_known<Policy, Tasks...>);
  using program = spawning<Policy, Tasks...>;
  return program::found || !program::known;
}

}  // namespace grosr::run
