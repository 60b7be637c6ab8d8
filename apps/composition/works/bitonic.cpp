#include <fmt/format.h>

#include <algorithm>

#include "works.hpp"

namespace grosr::composition {

// Stage k merges pairs of sorted runs of k / 2 elements, with passes of distances k / 2 to 1. Those
// of distances below bitonic_block stay inside of blocks, and are one step.
work bitonic_sort(std::uint32_t elements) {
  work w;
  w.name = fmt::format("bitonic, {} elements", elements);
  unsigned last = w.add_input(elements);
  last = w.add_step(operation::bitonic_local, {elements, 2, std::min(elements, bitonic_block)},
                    {last}, {elements});
  for (std::uint32_t stage = 2 * bitonic_block; stage <= elements; stage *= 2) {
    for (std::uint32_t distance = stage / 2; distance >= bitonic_block; distance /= 2)
      last = w.add_step(operation::bitonic_pass, {elements, stage, distance}, {last}, {elements});
    last = w.add_step(operation::bitonic_local, {elements, stage, stage}, {last}, {elements});
  }
  w.outputs = {last};
  w.plainly = [](arrays all) {
    std::sort(all[0].begin(), all[0].end());
    return all;
  };
  return w;
}

}  // namespace grosr::composition
