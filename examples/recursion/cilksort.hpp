// Cilksort of 32-bit keys on a device, by fork and join.
#pragma once

#include <cstdint>
#include <memory>

#include "grosr/run/options.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/device.hpp"

namespace grosr::recursion {

class cilksort {
 public:
  /// Throws grosr::error as runtime does.
  explicit cilksort(const device& d, const runtime_options& options = {});
  ~cilksort();

  /// Sorts all keys; `scratch` holds at least as many, and `keys` fewer than 2^32. Returns when
  /// they are sorted. Throws error(invalid_option or task_failed).
  void run(const simt::buffer<std::uint32_t>& keys, const simt::buffer<std::uint32_t>& scratch);

  runtime_stats stats() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::recursion
