// Edges are sorted into rows by counting. Each thread has a range of vertices of its own and passes
// over all edges for it, so there are no atomics, and what a thread writes stays in its cache
// longer.
#include "graph/io/build.hpp"

#include <bit>
#include <numeric>
#include <type_traits>

#include "graph/random.hpp"

namespace grosr::graphs {
namespace {

constexpr std::uint64_t few = 1 << 14;         // edges not worth a thread
constexpr std::size_t now_and_then = 1 << 20;  // edges between looks at whether to go on

/// What a range of vertices has to do with the edges: f(vertex, other end, weight).
template <class F>
void each_entry(host_threads& threads, const edge_list& list, vertex first, vertex last,
                bool directed, F&& f) {
  const vertex span = last - first;
  for (const edge_list::block& b : list.blocks()) {
    const edge* const edges = b.edges.data();
    const float* const weights = b.weights.empty() ? nullptr : b.weights.data();
    for (std::size_t i = 0, n = b.edges.size(); i < n; ++i) {
      if (i % now_and_then == 0) threads.look();
      const edge e = edges[i];
      const bool out = e.from - first < span, in = !directed && e.to - first < span;
      if (!out && !in) continue;
      const float w = weights != nullptr ? weights[i] : 0;
      if (out) f(e.from, e.to, w);
      if (in && e.from != e.to) f(e.to, e.from, w);
    }
  }
}

/// An entry while it is sorted: among duplicates the least weight comes first. Weights are not
/// negative, so they sort as their bits do.
template <bool Weighted>
struct entry {
  using type = std::conditional_t<Weighted, std::uint64_t, std::uint32_t>;
  static type make(vertex to, float w) {
    if constexpr (Weighted)
      return std::uint64_t{to} << 32 | std::bit_cast<std::uint32_t>(w);
    else
      return to;
  }
  static vertex column(type e) {
    if constexpr (Weighted)
      return static_cast<vertex>(e >> 32);
    else
      return e;
  }
};

/// Sorts a row and moves the entries that stay to its front. How many they are.
template <bool Weighted, class Entry>
std::uint32_t sort_row(Entry* first, Entry* last) {
  if (!std::is_sorted(first, last)) std::sort(first, last);
  const auto same = [](Entry a, Entry b) {
    return entry<Weighted>::column(a) == entry<Weighted>::column(b);
  };
  return static_cast<std::uint32_t>(std::unique(first, last, same) - first);
}

/// Rows while they are built.
template <bool Weighted>
class rows {
  using entry_of = entry<Weighted>;
  using entry_type = typename entry_of::type;

 public:
  rows(const edge_list& list, vertex vertices, bool directed, host_threads& threads)
      : list_(list), n_(vertices), directed_(directed), threads_(threads) {
    scanners_ =
        static_cast<unsigned>(std::clamp<std::uint64_t>(list.size() / few, 1, threads.count()));
  }

  void count(left_out& dropped) {
    end_.resize(std::size_t{n_} + 1);
    std::vector<std::uint64_t> loops(scanners_);
    threads_.run(scanners_, [&](unsigned t) {
      const vertex first = share(t), last = share(t + 1);
      std::fill(end_.begin() + first + 1, end_.begin() + last + 1, 0);
      std::uint64_t seen = 0;
      std::uint32_t* const counts = end_.data() + 1;
      each_entry(threads_, list_, first, last, directed_, [&](vertex v, vertex to, float) {
        if (v == to)
          ++seen;
        else
          ++counts[v];
      });
      loops[t] = seen;
    });
    dropped.loops += std::accumulate(loops.begin(), loops.end(), std::uint64_t{0});
    end_[0] = 0;
    add_up(end_, threads_);
  }

  /// Puts each entry into its row, at end_[v], which then is where the row ends.
  void scatter() {
    entries_.resize(end_[n_]);
    std::vector<vertex> bound(scanners_ + 1, n_);
    for (unsigned t = 0; t < scanners_; ++t)
      bound[t] = first_from(entries_.size() * t / scanners_ + std::uint64_t{n_} * t / scanners_);
    threads_.run(scanners_, [&](unsigned t) {
      std::uint32_t* const next = end_.data();
      entry_type* const entries = entries_.data();
      each_entry(threads_, list_, bound[t], bound[t + 1], directed_,
                 [&](vertex v, vertex to, float w) {
                   if (v != to) entries[next[v]++] = entry_of::make(to, w);
                 });
    });
  }

  void sort(csr_graph& g, left_out& dropped) {
    g.row.resize(std::size_t{n_} + 1);
    g.row[0] = 0;
    each_slice([&](vertex v) {
      entry_type* const entries = entries_.data();
      g.row[std::size_t{v} + 1] = sort_row<Weighted>(entries + begin(v), entries + end_[v]);
    });
    add_up(g.row, threads_);
    dropped.duplicates += (entries_.size() - g.row[n_]) / (directed_ ? 1 : 2);
  }

  /// Moves what stays into the graph.
  void finish(csr_graph& g) {
    const std::size_t stay = g.row[n_];
    if constexpr (!Weighted)
      if (stay == entries_.size()) {
        g.column = std::move(entries_);
        return;
      }
    g.column.resize(stay);
    if constexpr (Weighted) g.weight.resize(stay);
    each_slice([&](vertex v) {
      const entry_type* from = entries_.data() + begin(v);
      for (std::uint32_t i = g.row[v]; i < g.row[std::size_t{v} + 1]; ++i, ++from) {
        g.column[i] = entry_of::column(*from);
        if constexpr (Weighted)
          g.weight[i] = std::bit_cast<float>(static_cast<std::uint32_t>(*from));
      }
    });
  }

 private:
  vertex share(unsigned t) const { return static_cast<vertex>(std::uint64_t{n_} * t / scanners_); }
  std::uint32_t begin(vertex v) const { return v == 0 ? 0 : end_[v - 1]; }

  /// The first vertex with `work` entries and vertices in front of it, before scatter().
  vertex first_from(std::uint64_t work) const {
    vertex low = 0, high = n_;
    while (low < high) {
      const vertex middle = low + (high - low) / 2;
      if (std::uint64_t{end_[middle]} + middle < work)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  /// Calls f(v) for each vertex, after scatter(); slices have as much to do.
  template <class F>
  void each_slice(F&& f) {
    const auto row_at = [&](std::uint64_t work) {
      std::uint64_t low = 0, high = n_;
      while (low < high) {
        const std::uint64_t middle = (low + high) / 2;
        if (begin(static_cast<vertex>(middle)) + middle < work)
          low = middle + 1;
        else
          high = middle;
      }
      return static_cast<vertex>(low);
    };
    const std::uint64_t all = entries_.size() + std::uint64_t{n_};
    parallel_for(threads_, all, [&](std::uint64_t first, std::uint64_t last) {
      const vertex end = last == all ? n_ : row_at(last);
      for (vertex v = row_at(first); v < end; ++v) f(v);
    });
  }

  const edge_list& list_;
  const vertex n_;
  const bool directed_;
  host_threads& threads_;
  unsigned scanners_;
  huge_vector<std::uint32_t> end_;
  huge_vector<entry_type> entries_;
};

template <bool Weighted>
csr_graph build_rows(edge_list edges, vertex vertices, bool directed, left_out& dropped,
                     host_threads& threads) {
  csr_graph g;
  g.directed = directed;
  rows<Weighted> r(edges, vertices, directed, threads);
  r.count(dropped);
  r.scatter();
  edges = {};
  r.sort(g, dropped);
  r.finish(g);
  return g;
}

}  // namespace

void add_up(huge_vector<std::uint32_t>& row, host_threads& threads) {
  constexpr std::uint64_t slice = 1 << 16;
  const std::uint64_t n = row.size() - 1, slices = (n + slice - 1) / slice;
  std::vector<std::uint32_t> before(slices + 1, 0);
  const auto sum = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t s = first; s < last; ++s) {
      std::uint32_t total = 0;
      for (std::uint64_t i = s * slice; i < std::min(n, (s + 1) * slice); ++i)
        row[i + 1] = total += row[i + 1];
      before[s + 1] = total;
    }
  };
  parallel_for(threads, slices, sum, 1);
  std::partial_sum(before.begin(), before.end(), before.begin());
  const auto raise = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t s = first; s < last; ++s)
      for (std::uint64_t i = s * slice; i < std::min(n, (s + 1) * slice); ++i)
        row[i + 1] += before[s];
  };
  parallel_for(threads, slices, raise, 1);
}

csr_graph build(edge_list edges, vertex vertices, bool directed, left_out& dropped,
                host_threads& threads) {
  const bool weighted = std::any_of(edges.blocks().begin(), edges.blocks().end(),
                                    [](const auto& b) { return !b.weights.empty(); });
  return weighted ? build_rows<true>(std::move(edges), vertices, directed, dropped, threads)
                  : build_rows<false>(std::move(edges), vertices, directed, dropped, threads);
}

void give_random_weights(csr_graph& g, std::uint64_t seed, host_threads& threads) {
  const random_sequence random(seed);
  g.weight.resize(g.column.size());
  parallel_for(threads, g.vertices(), [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t v = first; v < last; ++v)
      for (std::uint32_t i = g.row[v]; i < g.row[v + 1]; ++i) {
        const std::uint64_t w = g.column[i];
        g.weight[i] = positive_unit(random[std::min(v, w) << 32 | std::max(v, w)]);
      }
  });
}

edge_list edges_of(const csr_graph& g, host_threads& threads) {
  edge_list::block all;
  all.edges.resize(g.column.size());
  parallel_for(threads, g.vertices(), [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t v = first; v < last; ++v)
      for (std::uint32_t i = g.row[v]; i < g.row[v + 1]; ++i)
        all.edges[i] = {static_cast<vertex>(v), g.column[i]};
  });
  all.weights = g.weight;
  edge_list list;
  list.add(std::move(all));
  return list;
}

csr_graph build(edge_list edges, vertex vertices, bool directed, left_out& dropped,
                const host_work& how) {
  host_threads threads(how);
  return build(std::move(edges), vertices, directed, dropped, threads);
}

void give_random_weights(csr_graph& g, std::uint64_t seed, const host_work& how) {
  host_threads threads(how);
  give_random_weights(g, seed, threads);
}

}  // namespace grosr::graphs
