// Additions to an array that lies on several ranks.
#pragma once

#include <cstdint>
#include <memory>

#include "grosr/simt/device.hpp"

namespace grosr::tool {

/// Ranks that share a device, half of it at most. A run counts numbers, of each rank the same, into
/// bins that lie on all of them.
class counting_ranks {
 public:
  virtual ~counting_ranks() = default;
  virtual void count() = 0;
  /// Whether each bin holds what all runs so far should have added to it.
  virtual bool is_right() const = 0;
  /// Additions of a run.
  virtual std::uint64_t additions() const = 0;
};
std::unique_ptr<counting_ranks> make_counting_ranks(const device& where, std::uint32_t ranks,
                                                    std::uint32_t tasks, std::uint32_t per_task);

}  // namespace grosr::tool
