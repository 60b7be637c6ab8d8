// A heap's report in words.
#include <fmt/format.h>

#include "grosr/alloc/heap.hpp"
#include "grosr/simt/error.hpp"

namespace grosr {
double heap_report::internal_fragmentation() const {
  const auto used = static_cast<double>(bytes - free_bytes);
  return used == 0 ? 0 : 1 - static_cast<double>(live_bytes) / used;
}

double heap_report::external_fragmentation() const {
  return free_bytes == 0 ? 0
                         : 1 - static_cast<double>(largest_free) / static_cast<double>(free_bytes);
}

std::string heap_report::text() const {
  using simt::in_units;
  std::string t = fmt::format(
      "heap of {} and {} besides: {} blocks of {} live, {} in free slabs (longest run {}), high "
      "water {}\n",
      in_units(bytes), in_units(metadata), live, in_units(live_bytes), in_units(free_bytes),
      in_units(largest_free), in_units(high_water));
  if (live != 0)
    t += fmt::format(
        "fragmentation: {:.1f}% of the used slabs has no block, {:.1f}% of the free bytes is not "
        "in "
        "the longest run\n",
        100 * internal_fragmentation(), 100 * external_fragmentation());
  if (failures + bad_alignments + foreign_frees + double_frees + overruns != 0)
    t += fmt::format(
        "allocations without memory: {}; with a bad alignment: {}; frees of foreign pointers: {}; "
        "of what was free: {}; blocks written past their end: {}\n",
        failures, bad_alignments, foreign_frees, double_frees, overruns);
  for (const heap_class_report& c : classes) {
    if (c.live == 0 && c.slabs == 0 && c.failures == 0) continue;
    t += fmt::format("{:>8}: {:>12} live in {:>8} slabs",
                     c.block_bytes != 0 ? std::to_string(c.block_bytes) : "runs", c.live, c.slabs);
    if (c.failures != 0) t += fmt::format(", {} failures", c.failures);
    t += '\n';
  }
  return t;
}

}  // namespace grosr
