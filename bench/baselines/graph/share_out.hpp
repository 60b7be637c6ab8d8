// A step's chunks, shared out among the blocks of a launch.
#pragma once

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::graphs {

/// Device memory; zeroed before the first step.
struct share_state {
  alignas(128) std::uint32_t cursor;  ///< chunks taken beyond each block's first
  alignas(128) std::uint32_t arrived;
};

struct share_store {
  std::uint32_t chunk;
};

/// Whole grid: a step's chunks. Thread 0 of the block that ends last gets true, and then all of the
/// step is done.
template <class Work>
GROSR_DEVICE bool share_out(share_state& s, std::uint32_t chunks, const Work& work) {
  auto& store = simt::block_shared<share_store>();
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
