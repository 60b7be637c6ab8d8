// The processors near a device: those of its NUMA node, or what else hwloc says it is attached to.
#pragma once

#include <string>
#include <vector>

#include "grosr/simt/device.hpp"

namespace grosr::simt {

/// Whether this build can tell: it has hwloc.
bool knows_topology();

/// Numbers of the processors near a device, of those that the calling thread may run on. None when
/// there is nothing to choose, or nobody knows: the machine has one NUMA node, all processors are
/// near or none of them may be used, the device is a `host:N`, there is no hwloc. Takes some
/// milliseconds. Never throws but std::bad_alloc.
std::vector<unsigned> processors_near(device d);

/// The same for what is attached at an address of the PCI bus, "0000:17:00.0".
std::vector<unsigned> processors_near(const std::string& pci_address);

/// Has the calling thread, and threads that it starts later, run on these processors. Whether it
/// does; false when it may not run on any.
bool set_affinity(const std::vector<unsigned>& processors);

}  // namespace grosr::simt
