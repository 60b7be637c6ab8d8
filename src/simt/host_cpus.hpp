// The processors of this machine that the process may use.
#pragma once

namespace grosr::simt::host {

/// CPUs in the process's affinity mask, at most GROSR_HOST_WORKERS; at least 1.
unsigned usable_cpus();

}  // namespace grosr::simt::host
