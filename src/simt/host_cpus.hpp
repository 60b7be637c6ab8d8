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

/// Asks for the cache line of `p`, to write to it soon.
inline void prefetch_to_write(void* p) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<char*>(p)));
#else
  __builtin_prefetch(p, 1);
#endif
}

}  // namespace grosr::simt::host
