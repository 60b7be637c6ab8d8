#include "simt/host_cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace grosr::simt::host {

unsigned usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  unsigned count = std::thread::hardware_concurrency();
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = static_cast<unsigned>(CPU_COUNT(&set));
  if (const char* text = std::getenv("GROSR_HOST_WORKERS")) {
    const long cap = std::strtol(text, nullptr, 10);
    if (cap > 0) count = static_cast<unsigned>(std::min<long>(count, cap));
  }
  return std::max(count, 1u);
}

}  // namespace grosr::simt::host
