#include "simt/host_cpus.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "simt/environment.hpp"

namespace grosr::simt::host {

unsigned usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  unsigned count = std::thread::hardware_concurrency();
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = static_cast<unsigned>(CPU_COUNT(&set));
  if (const auto most = from_environment(host_workers))
    count = static_cast<unsigned>(std::min<std::uint64_t>(count, *most));
  return std::max(count, 1u);
}

}  // namespace grosr::simt::host
