// A loop over the chunks of a step, whose iterations the blocks of a launch divide among them.
#pragma once

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::graphs {

/// Device memory; zeroed before the first step.
struct grid_for_state {
  alignas(128) std::uint32_t cursor;  ///< chunks taken beyond each block's first
  alignas(128) std::uint32_t arrived;
};

struct grid_for_store {
  std::uint32_t chunk;
};

/// Whole grid: calls `work(c)` by a whole block for each c below `chunks`; a block begins with its
/// own number, and takes further ones from a counter. Thread 0 of the block that ends last gets
/// true: then all calls have been made, and their stores are visible to it.
template <class Work>
GROSR_DEVICE bool grid_for(grid_for_state& s, std::uint32_t chunks, const Work& work) {
  auto& store = simt::block_shared<grid_for_store>();
  for (std::uint32_t c = simt::block_id(); c < chunks;) {
    work(c);
    simt::sync_block();
    if (simt::thread_id() == 0)
      store.chunk = chunks <= simt::grid_size()
                        ? chunks
                        : simt::grid_size() +
                              simt::atomic_ref<std::uint32_t>(s.cursor).fetch_add(1, simt::relaxed);
    simt::sync_block();
    c = store.chunk;
    simt::sync_block();
  }
  simt::sync_block();  // all of them know what step it is
  if (simt::thread_id() != 0) return false;
  if (simt::atomic_ref<std::uint32_t>(s.arrived).fetch_add(1, simt::acq_rel) + 1 !=
      simt::grid_size())
    return false;
  s.arrived = s.cursor = 0;
  return true;
}

}  // namespace grosr::graphs
