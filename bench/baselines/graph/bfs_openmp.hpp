// Breadth-first search on the CPU as fast as is known, to compare with. It changes direction
// (Beamer, Asanovic, Patterson, "Direction-Optimizing Breadth-First Search", SC 2012), with the
// parameters and queues of the GAP benchmark suite: levels with many edges are found from below,
// by bitmaps, where the graph is undirected.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "grosr/graph/csr_graph.hpp"

namespace grosr::graphs {

/// Keeps its memory from search to search: about 12 bytes a vertex. The graph must outlive it.
class openmp_bfs {
 public:
  /// With 0 threads, as many as OpenMP takes; one where the program was built without OpenMP.
  explicit openmp_bfs(const csr_graph& g, unsigned threads = 0);

  /// A source that is no vertex reaches none.
  void run(vertex source);

  /// Results of the last run: as bfs_distances(), and the vertex that first led to each, the source
  /// to itself.
  std::span<const std::uint32_t> distance() const { return {distance_.get(), g_.vertices()}; }
  std::span<const vertex> parent() const { return {parent_.get(), g_.vertices()}; }

  unsigned threads() const { return threads_; }
  /// How many levels of the last run were found from below.
  unsigned levels_from_below() const { return from_below_; }

 private:
  class found;

  void forget();
  std::int64_t down(std::uint32_t level);
  std::uint64_t up(std::uint32_t level);
  void queue_to_bits();
  void bits_to_queue();
  std::uint64_t words() const { return (std::uint64_t{g_.vertices()} + 63) / 64; }

  const csr_graph& g_;
  unsigned threads_, from_below_ = 0;
  std::unique_ptr<std::uint32_t[]> distance_;
  std::unique_ptr<vertex[]> parent_, queue_;
  std::unique_ptr<std::uint64_t[]> front_, next_;  // a bit a vertex: of this level, of the next
  // This level is queue_[begin_] to queue_[end_ - 1]; the next one is put behind it.
  std::uint64_t begin_ = 0, end_ = 0;
  std::atomic<std::uint64_t> tail_{0};
};

}  // namespace grosr::graphs
