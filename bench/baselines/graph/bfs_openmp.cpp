// Levels found from above, along the edges out of a queue, or from below, by who has no parent yet.
#include "baselines/graph/bfs_openmp.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <utility>

#include "grosr/graph/detail/openmp.hpp"
#include "grosr/graph/reference/reference.hpp"

namespace grosr::graphs {
namespace {

// GAP's: from below as soon as the edges out of a level are more than 1 / alpha of those not yet
// looked at; from above again when a level shrinks to less than 1 / beta of the vertices.
constexpr std::int64_t alpha = 15;
constexpr std::uint64_t beta = 18;

// A level with fewer vertices is not worth starting threads for.
constexpr std::uint64_t few = 64;

constexpr auto relaxed = std::memory_order_relaxed;

}  // namespace

// What one thread found of the next level: goes to the queue in larger pieces.
class openmp_bfs::found {
 public:
  explicit found(openmp_bfs& all) : all_(all) {}
  ~found() { flush(); }
  found(const found&) = delete;

  void add(vertex v) {
    if (count_ == kept_.size()) flush();
    kept_[count_++] = v;
  }

 private:
  void flush() {
    std::copy_n(kept_.begin(), count_, &all_.queue_[all_.tail_.fetch_add(count_, relaxed)]);
    count_ = 0;
  }

  openmp_bfs& all_;
  std::size_t count_ = 0;
  std::array<vertex, 4096> kept_;
};

// What is not filled here is first touched, and so placed, by the threads that use it.
openmp_bfs::openmp_bfs(const csr_graph& g, unsigned threads)
    : g_(g),
      threads_(openmp_threads(threads)),
      distance_(std::make_unique_for_overwrite<std::uint32_t[]>(g.vertices())),
      parent_(std::make_unique_for_overwrite<vertex[]>(g.vertices())),
      queue_(std::make_unique_for_overwrite<vertex[]>(std::size_t{g.vertices()} + 1)),
      front_(std::make_unique_for_overwrite<std::uint64_t[]>(words())),
      next_(std::make_unique_for_overwrite<std::uint64_t[]>(words())) {
  forget();
}

void openmp_bfs::forget() {
  on_threads(threads_, [&] {
    each_by_threads(threads_, g_.vertices(), 0, [&](std::uint64_t v) {
      distance_[v] = no_distance;
      parent_[v] = no_vertex;
    });
  });
  begin_ = end_ = 0;
  tail_ = 0;
  from_below_ = 0;
}

void openmp_bfs::run(vertex source) {
  forget();
  if (source >= g_.vertices()) return;
  distance_[source] = 0;
  parent_[source] = source;
  queue_[0] = source;
  tail_ = end_ = 1;
  const auto slide = [&] { begin_ = std::exchange(end_, tail_.load()); };
  std::int64_t unseen = g_.entries(), edges = g_.row[source + 1] - g_.row[source];
  for (std::uint32_t level = 1; begin_ != end_; ++level) {
    if (g_.directed || edges <= unseen / alpha) {
      unseen -= edges;
      edges = down(level);
      slide();
      continue;
    }
    queue_to_bits();
    std::uint64_t before, now = end_ - begin_;
    for (;; ++level) {
      before = std::exchange(now, up(level));
      std::swap(front_, next_);
      ++from_below_;
      if (now < before && now <= g_.vertices() / beta) break;
    }
    bits_to_queue();
    slide();
    edges = 1;  // as GAP has it: the next level is found from above
  }
}

// Finds a level from above; the result is the number of edges out of it.
std::int64_t openmp_bfs::down(std::uint32_t level) {
  const std::uint64_t count = end_ - begin_;
  const unsigned threads = count < few ? 1 : threads_;
  std::atomic<std::int64_t> edges{0};
  on_threads(threads, [&] {
    found mine(*this);
    std::int64_t out = 0;
    each_by_threads(threads, count, 0, [&](std::uint64_t i) {
      const vertex u = queue_[begin_ + i];
      for (std::uint32_t e = g_.row[u], end = g_.row[u + 1]; e < end; ++e) {
        const vertex v = g_.column[e];
        const std::atomic_ref<vertex> p(parent_[v]);
        vertex none = no_vertex;
        if (p.load(relaxed) != no_vertex) continue;
        if (threads == 1)
          p.store(u, relaxed);
        else if (!p.compare_exchange_strong(none, u, relaxed))
          continue;
        distance_[v] = level;
        mine.add(v);
        out += g_.row[v + 1] - g_.row[v];
      }
    });
    edges.fetch_add(out, relaxed);
  });
  return edges;
}

// Finds a level from below: who has none yet takes any neighbour of the level before for a parent.
// The result is the number of vertices.
std::uint64_t openmp_bfs::up(std::uint32_t level) {
  const vertex n = g_.vertices();
  std::atomic<std::uint64_t> count{0};
  on_threads(threads_, [&] {
    std::uint64_t mine = 0;
    each_by_threads(threads_, words(), 16, [&](std::uint64_t w) {
      std::uint64_t bits = 0;
      const std::uint64_t first = w * 64, last = std::min<std::uint64_t>(n, first + 64);
      for (std::uint64_t v = first; v < last; ++v) {
        if (parent_[v] != no_vertex) continue;
        for (std::uint32_t e = g_.row[v], end = g_.row[v + 1]; e < end; ++e) {
          const vertex u = g_.column[e];
          if ((front_[u / 64] >> (u % 64) & 1) == 0) continue;
          parent_[v] = u;
          distance_[v] = level;
          bits |= std::uint64_t{1} << (v - first);
          break;
        }
      }
      next_[w] = bits;
      mine += static_cast<unsigned>(std::popcount(bits));
    });
    count.fetch_add(mine, relaxed);
  });
  return count;
}

void openmp_bfs::queue_to_bits() {
  on_threads(threads_, [&] {
    each_by_threads(threads_, words(), 0, [&](std::uint64_t w) { front_[w] = 0; });
  });
  on_threads(threads_, [&] {
    each_by_threads(threads_, end_ - begin_, 1024, [&](std::uint64_t i) {
      const vertex v = queue_[begin_ + i];
      std::atomic_ref(front_[v / 64]).fetch_or(std::uint64_t{1} << (v % 64), relaxed);
    });
  });
}

// Behind the level from which the search changed direction.
void openmp_bfs::bits_to_queue() {
  on_threads(threads_, [&] {
    found mine(*this);
    each_by_threads(threads_, words(), 1024, [&](std::uint64_t w) {
      for (std::uint64_t bits = front_[w]; bits != 0; bits &= bits - 1)
        mine.add(static_cast<vertex>(w * 64 + static_cast<unsigned>(std::countr_zero(bits))));
    });
  });
}

}  // namespace grosr::graphs
