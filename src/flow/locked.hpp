// Locks that are held for less time than it takes to sleep and to wake.
#pragma once

#include <mutex>

#include "grosr/simt/relax.hpp"

namespace grosr::flow {

/// Who finds the mutex taken looks again some times, for a few microseconds, before it sleeps.
inline std::unique_lock<std::mutex> locked(std::mutex& m) {
  for (int i = 0; i < 100; ++i) {
    if (m.try_lock()) return {m, std::adopt_lock};
    simt::relax();
  }
  return std::unique_lock(m);
}

}  // namespace grosr::flow
