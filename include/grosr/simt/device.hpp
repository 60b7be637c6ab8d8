// Devices: real GPUs (`cuda:N`) and the CPU's warp machine (`host:N`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grosr/simt/error.hpp"

namespace grosr {

enum class backend : std::uint8_t { host, cuda };

/// What a device is made of. Sizes in bytes, times in nanoseconds.
struct device_properties {
  std::string description;             ///< e.g. "NVIDIA H100 80GB HBM3"
  unsigned sms = 0;                    ///< multiprocessors; on the host, worker threads
  unsigned max_threads_per_sm = 0;     ///< resident lanes an SM can hold
  unsigned max_threads_per_block = 0;  ///< lanes in the largest block
  std::size_t memory = 0;              ///< device memory in total
  std::size_t memory_free = 0;         ///< device memory free when asked
  std::string architecture;            ///< e.g. "sm_90", "x86_64"
  unsigned clock_khz = 0;              ///< 0 where unknown
  std::size_t l2_bytes = 0;            ///< the cache that all multiprocessors share; host: 0
};

/// A device by backend and index. A value: cheap to copy, compares by both fields.
class device {
 public:
  /// `host:0`.
  device() = default;

  /// Parses "host:N" or "cuda:N" ("cuda" and "host" mean number 0) and checks that it is here.
  /// Throws error(no_such_device or not_built) naming the devices there are.
  explicit device(std::string_view name);

  /// All devices present, GPUs first. Never throws for a missing or broken driver: those GPUs
  /// are left out and `cuda_status()` says why. Thread-safe.
  static std::vector<device> list();

  /// The first GPU if there is one, else `host:0`.
  static device best();

  /// Why there are no GPUs, in a sentence; empty if there are some.
  static std::string cuda_status();

  backend kind() const { return backend_; }
  int index() const { return index_; }
  bool is_cuda() const { return backend_ == backend::cuda; }
  std::string name() const;  ///< "cuda:0"
  /// Asks the driver each time, in microseconds. Throws error(device_lost) when the GPU faulted.
  device_properties properties() const;

  friend bool operator==(const device&, const device&) = default;

 private:
  device(backend kind, int index) : backend_(kind), index_(index) {}
  backend backend_ = backend::host;
  int index_ = 0;
};

}  // namespace grosr
