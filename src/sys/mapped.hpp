// Memory of the host that kernels have mapped, and may therefore unmap, advise on and pass to
// calls.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace grosr::sys {

/// Ranges of addresses. Any thread may call.
class mapped_ranges {
 public:
  mapped_ranges() = default;
  /// Unmaps all of them: kernels that have ended cannot.
  ~mapped_ranges();
  mapped_ranges(const mapped_ranges&) = delete;

  using range = std::pair<std::uint64_t, std::uint64_t>;  ///< begin and end

  void add(std::uint64_t begin, std::uint64_t bytes);
  /// What of these bytes was in ranges, and is no longer.
  std::vector<range> remove(std::uint64_t begin, std::uint64_t bytes);
  /// Whether all of these bytes are in ranges.
  bool holds(std::uint64_t begin, std::uint64_t bytes) const;

 private:
  mutable std::shared_mutex lock_;
  std::map<std::uint64_t, std::uint64_t> ends_;  // by begin; neither overlapping nor touching
};

}  // namespace grosr::sys
