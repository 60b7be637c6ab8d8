// The processors of this machine that the process may use.
#pragma once

namespace grosr::simt::host {

/// CPUs in the process's affinity mask, at most GROSR_HOST_WORKERS; at least 1.
unsigned usable_cpus();

/// Tells the processor that this is a spin loop.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace grosr::simt::host
