// What the hardware allows: measured with bare kernels, no runtime, so that every rate can be shown
// beside its limit in the same run. Each call measures afresh; all times in microseconds.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "grosr/simt/device.hpp"
#include "measure/samples.hpp"

namespace grosr::tool::limits {

/// A rate or a time, and what was wrong with the result if anything was.
struct figure {
  double number = 0;
  std::string wrong;
};

struct times {
  samples us;
  std::string wrong;
};

// launch_device.cpp
times launch_and_wait(const device& d, unsigned n);  ///< an empty kernel of one warp
figure launch_only(const device& d, unsigned n);     ///< us each, one wait at the end
std::optional<figure> graph_node(const device& d, unsigned nodes);  ///< us each; CUDA only

// bus_device.cpp
times ping_pong(const device& d, unsigned n);  ///< CPU -> device -> CPU through pinned memory
times pong_ping(const device& d, unsigned n);  ///< device -> CPU -> device, on the device's clock
times doorbell_ping(const device& d, unsigned n);  ///< device -> sleeping CPU thread -> device
figure copy_to_device(const device& d, std::size_t bytes);  ///< GB/s, the copy engine
figure copy_to_host(const device& d, std::size_t bytes);    ///< GB/s
figure lanes_load(const device& d, std::size_t bytes);      ///< GB/s, lanes reading pinned memory
figure lanes_store(const device& d, std::size_t bytes);     ///< GB/s, lanes writing pinned memory

// ring_device.cpp
/// From the first of so many records of 16 bytes, which the CPU writes to a ring of pinned memory,
/// to the last one that a resident kernel says it read: n times, by the number of warps, and the
/// stores of the CPU, that are soonest done.
times ring_reader(const device& d, std::uint32_t records, unsigned n);

// memory_device.cpp
figure memory_read(const device& d, std::size_t bytes);  ///< GB/s, device memory
/// Lanes served a second by atomics on one word: each lane its own (group 1), one for a warp (32),
/// or one for a block of 512 lanes (512).
figure one_address_atomics(const device& d, unsigned group);
figure spread_atomics(const device& d);  ///< a second, each lane its own, over 8 MB, returning

// between_device.cpp
figure hop(const device& d, unsigned n);  ///< round trip between two SMs
/// From lane 0 to the others of a warp and back, by a record of 16 bytes in block-shared memory.
figure hop_in_warp(const device& d, unsigned n);
figure grid_barrier(const device& d, unsigned n);  ///< one block an SM

}  // namespace grosr::tool::limits
