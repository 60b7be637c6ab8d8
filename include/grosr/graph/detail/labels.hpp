// What searches know of a vertex, in one word: its distance and its parent; and bitmaps of them.
#pragma once

#include <vector>

#include "grosr/graph/graph_ref.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::graphs {

inline constexpr std::uint32_t unreached = ~std::uint32_t{0};
inline constexpr std::uint64_t unreached_label = ~std::uint64_t{0};

/// The least label is the nearest; of equal distances the least parent.
GROSR_DEVICE constexpr std::uint64_t label_of(std::uint32_t distance, vertex parent) {
  return std::uint64_t{distance} << 32 | parent;
}
GROSR_DEVICE constexpr std::uint32_t distance_of(std::uint64_t label) {
  return static_cast<std::uint32_t>(label >> 32);
}

/// Where the distances of one search after the other begin: each time so much lower that what the
/// last one left is farther than anything can be, as if it was not reached. Labels need resetting
/// only when there is nothing lower, or the last search did not end.
class distance_offsets {
 public:
  struct one {
    std::uint32_t base;
    std::uint32_t fresh;  ///< labels are to be reset
  };

  explicit distance_offsets(vertex vertices)
      : apart_(vertices < unreached ? vertices + 1 : vertices) {}

  /// For a search that begins.
  one next() {
    const bool fresh = !ended_ || last_ < apart_;
    ended_ = false;
    last_ = fresh ? (unreached / apart_ - 1) * apart_ : last_ - apart_;
    return {last_, fresh ? 1u : 0u};
  }
  /// That search has ended.
  void ended() { ended_ = true; }
  /// Its base.
  std::uint32_t base() const { return last_; }

 private:
  std::uint32_t apart_, last_ = 0;
  bool ended_ = false;
};

inline constexpr std::uint32_t chunk_words = 256;

GROSR_DEVICE constexpr std::uint32_t chunks_of(std::uint64_t items, std::uint32_t each) {
  return static_cast<std::uint32_t>((items + each - 1) / each);
}
/// Chunks of a bitmap of all vertices.
GROSR_DEVICE constexpr std::uint32_t word_chunks(const graph_ref& g) {
  return chunks_of((std::uint64_t{g.vertices} + 31) / 32, chunk_words);
}

/// Whole block, a chunk of `words` words: calls word(w) for each of them.
template <class Word>
GROSR_DEVICE void each_word(const graph_ref& g, std::uint32_t chunk, std::uint32_t words,
                            const Word& word) {
  const std::uint64_t all = (std::uint64_t{g.vertices} + 31) / 32;
  for (std::uint32_t i = simt::thread_id(); i < words; i += simt::block_size()) {
    const std::uint64_t w = std::uint64_t{chunk} * words + i;
    if (w < all) word(static_cast<std::uint32_t>(w));
  }
}

/// Equal shares of all vertices: one for each of `blocks`, or fewer where they would be very small.
GROSR_DEVICE constexpr std::uint32_t shares_of(const graph_ref& g, std::uint32_t blocks) {
  const std::uint32_t most = chunks_of((std::uint64_t{g.vertices} + 31) / 32, 64);
  return blocks < most ? blocks : most;
}

struct alignas(16) label_pair {
  std::uint64_t of[2];
};

/// Whole block, a share of `shares`: calls word(w) for each word of a bitmap of all vertices.
template <class Word>
GROSR_DEVICE void share_words(const graph_ref& g, std::uint32_t share, std::uint32_t shares,
                              const Word& word) {
  const std::uint64_t words = (std::uint64_t{g.vertices} + 31) / 32;
  const std::uint64_t first = words * share / shares, last = words * (share + 1) / shares;
  for (std::uint64_t w = first + simt::thread_id(); w < last; w += simt::block_size())
    word(static_cast<std::uint32_t>(w));
}

/// Whole block, a share of `shares`: nobody is reached but the source, whose distance is `base`.
GROSR_DEVICE inline void reset_labels(const graph_ref& g, std::uint64_t* label, std::uint32_t share,
                                      std::uint32_t shares, vertex source, std::uint32_t base = 0) {
  const unsigned t = simt::thread_id(), size = simt::block_size();
  label = simt::in_global_memory(label);
  // All blocks write near each other, tile by tile.
  constexpr std::uint64_t tile = 512;
  for (std::uint64_t begin = share * tile; begin < g.vertices; begin += shares * tile) {
    for (std::uint64_t v = begin + 2 * t; v < begin + tile; v += 2 * size) {
      label_pair pair{{unreached_label, unreached_label}};
      if (v / 2 == source / 2) pair.of[source % 2] = label_of(base, source);
      if (v + 1 < g.vertices)
        *reinterpret_cast<label_pair*>(label + v) = pair;
      else if (v < g.vertices)
        label[v] = pair.of[0];
    }
  }
}

/// Labels, on the host.
inline std::vector<std::uint64_t> labels_on_host(const simt::buffer<std::uint64_t>& label) {
  std::vector<std::uint64_t> all(label.size());
  label.copy_to(all);
  return all;
}

/// Distances and parents of a search whose distances begin at `base`; of what was not reached,
/// `unreached` and no_vertex.
inline std::vector<std::uint32_t> distances_on_host(const simt::buffer<std::uint64_t>& label,
                                                    std::uint32_t base) {
  std::vector<std::uint32_t> all;
  all.reserve(label.size());
  for (const std::uint64_t l : labels_on_host(label)) {
    const std::uint32_t d = distance_of(l) - base;
    all.push_back(d < label.size() ? d : unreached);
  }
  return all;
}
inline std::vector<vertex> parents_on_host(const simt::buffer<std::uint64_t>& label,
                                           std::uint32_t base) {
  std::vector<vertex> all;
  all.reserve(label.size());
  for (const std::uint64_t l : labels_on_host(label))
    all.push_back(distance_of(l) - base < label.size() ? static_cast<vertex>(l) : no_vertex);
  return all;
}

}  // namespace grosr::graphs
