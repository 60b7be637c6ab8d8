// A full fence between two sides of which one is rare: that one pays for both.
//
//   often:  store a; light_fence(); load b          rarely:  store b; heavy_fence(); load a
//
// At least one of the two loads sees the other side's store. Both sides are threads of this
// process; nothing is said of a device.
#pragma once

namespace grosr::simt {

/// Whether heavy_fence() can make Linux fence the other threads of this process (membarrier(2)). If
/// not, light_fence() is a full fence.
extern const bool others_can_be_fenced;

inline void light_fence() {
  if (others_can_be_fenced)
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/// Where membarrier() fails later, for want of memory or by a filter, it sleeps for 1 ms instead.
void heavy_fence();

}  // namespace grosr::simt
