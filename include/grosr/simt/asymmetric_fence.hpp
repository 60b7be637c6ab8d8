// A full fence between two sides of which one is rare: that one pays for both.
//
//   often:  store a; light_fence(); load b          rarely:  store b; heavy_fence(); load a
//
// One of the two loads sees the other side's store. Both are threads of this process; of a device
// nothing is said.
#pragma once

namespace grosr::simt {

/// Whether Linux makes the other threads of this process fence (membarrier(2)). Else light_fence()
/// does it itself.
extern const bool others_can_be_fenced;

inline void light_fence() {
  if (others_can_be_fenced)
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void heavy_fence();

}  // namespace grosr::simt
