#include <memory>

#include "cases/tiles.hpp"

#include "grosr/simt/atomic.hpp"
#include "work/hosted.hpp"

namespace grosr::tool {
namespace {

// One lane computes, the others keep it company: a warp is busy for the time of a tile on both
// backends, though the host's lanes take turns.
GROSR_DEVICE inline void be_busy(auto& context, std::uint32_t nanoseconds) {
  if (context.rank() == 0) {
    const std::uint64_t end = simt::clock_ns() + nanoseconds;
    while (simt::clock_ns() < end) {
    }
  }
  context.sync();
}

GROSR_DEVICE inline bool told(const std::uint32_t* stop) {
  using word = simt::atomic_ref<std::uint32_t>;
  return word(const_cast<std::uint32_t&>(*stop)).load(simt::relaxed) != 0;
}

GROSR_DEVICE inline void count(std::uint64_t* word) {
  simt::atomic_ref<std::uint64_t>(*word).fetch_add(1, simt::relaxed);
}

}  // namespace

GROSR_DEVICE void tile::operator()(auto& context) const {
  be_busy(context, tile_ns);
  if (context.rank() != 0) return;
  count(tiles);
  if (!told(stop) && !context.aborted()) context.spawn(*this);
}

GROSR_DEVICE void sliced::operator()(auto& context) const {
  for (std::uint32_t i = left; i > 0; --i) {
    be_busy(context, tile_ns);
    if (context.rank() == 0) count(tiles);
    enum : std::uint32_t { go_on, end, make_way };
    std::uint32_t next = go_on;
    if (context.rank() == 0) {
      if (told(stop) || context.aborted())
        next = end;
      else if (i > 1 && context.yield_to_higher())
        next = make_way;
    }
    next = simt::shuffle(simt::full_mask, next, 0);
    if (next == end) return;
    if (next == go_on) continue;
    if (context.rank() == 0) {
      count(tiles + 1);
      context.spawn(sliced{stop, tiles, tile_ns, i - 1, length});
    }
    return;
  }
  if (context.rank() == 0) context.spawn(sliced{stop, tiles, tile_ns, length, length});
}

std::unique_ptr<any_runtime> make_tile_runtime(const device& d, const runtime_options& options) {
  return std::make_unique<hosted<tile, sliced, touch>>(d, options);
}

}  // namespace grosr::tool
