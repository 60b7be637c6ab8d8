// From the bitmap of what is pending to the next wave.
#pragma once

#include "grosr/graph/detail/wave.hpp"

namespace grosr::graphs {

/// Whole block, a chunk of chunk_words of the bitmap: what is pending nearer than `limit` goes to
/// the pool, as far as there is room; what is nearer than `settled` has been relaxed at that
/// distance since it was marked, and is dropped. `least` takes the least distance of what stays.
template <class Cost>
GROSR_DEVICE void pending_to_pool(const wave_view<Cost>& v, std::uint32_t chunk,
                                  std::uint32_t settled, std::uint32_t limit,
                                  std::uint32_t& least) {
  constexpr std::uint32_t words = chunk_words;
  const std::uint64_t all = (std::uint64_t{v.graph.vertices} + 31) / 32;
  std::uint32_t stays = unreached, refused = 0;
  for (std::uint32_t base = 0; base < words; base += simt::block_size()) {
    const std::uint32_t w = chunk * words + base + simt::thread_id();
    const std::uint32_t word =
        base + simt::thread_id() < words && w < all
            ? simt::atomic_ref<std::uint32_t>(v.pending[w]).load(simt::relaxed)
            : 0;
    std::uint32_t left = word;
    for (std::uint32_t rest = word; simt::any(simt::full_mask, rest != 0); rest &= rest - 1) {
      wave_entry e{no_vertex, 0, 0, unreached};
      unsigned bit = 0;
      if (rest != 0) {
        bit = simt::lowest_bit(rest);
        e.v = w * 32 + bit;
        e.distance = distance_of(simt::atomic_ref<std::uint64_t>(v.label[e.v]).load(simt::relaxed));
      }
      if (rest != 0 && e.distance < settled) left &= ~(1u << bit);
      const bool goes = rest != 0 && e.distance >= settled && e.distance < limit;
      if (rest != 0 && e.distance >= limit && e.distance < stays) stays = e.distance;
      const std::uint32_t mask = simt::ballot(simt::full_mask, goes);
      if (mask == 0) continue;
      if (simt::lane_id() == 0)
        simt::atomic_ref<std::uint32_t>(v.state->work)
            .fetch_add(simt::popcount(mask), simt::relaxed);
      simt::sync_warp();
      if (goes) {
        e.begin = v.graph.row[e.v];
        e.end = v.graph.row[e.v + 1];
        if (v.pool.try_push(mask, e)) {
          left &= ~(1u << bit);
        } else {
          ++refused;
          stays = 0;
        }
      }
      simt::sync_warp();
    }
    if (left != word) simt::atomic_ref<std::uint32_t>(v.pending[w]).store(left, simt::relaxed);
  }
  refused = warp_sum(refused);
  if (simt::lane_id() == 0 && refused != 0)
    simt::atomic_ref<std::uint32_t>(v.state->work).fetch_sub(refused, simt::relaxed);
  if (stays != unreached) simt::atomic_ref<std::uint32_t>(least).fetch_min(stays, simt::relaxed);
}

}  // namespace grosr::graphs
