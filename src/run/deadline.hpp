// Whether a wait has lasted as long as it may.
#pragma once

#include "grosr/run/options.hpp"

namespace grosr::run {

inline bool expired(const deadline& until) {
  return until && std::chrono::steady_clock::now() >= *until;
}

}  // namespace grosr::run
