// The host's side: where vertices and edges lie, and rounds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "colouring_tasks.hpp"
#include "graph_on_ranks.hpp"
#include "pagerank_tasks.hpp"
#include "ranks/share_out.hpp"
#include "shortest_path_tasks.hpp"

namespace grosr::distributed {
namespace {

using graphs::csr_graph, graphs::vertex;

// One type of world for all algorithms: each takes nvcc a minute.
using graph_world =
    net::world<begin_pagerank, sweep<push_residuals>, begin_shortest_paths, sweep<relax_edges>,
               find_least, begin_colouring, edges_by_warp<count_neighbour>, start_colouring,
               coloured, edges_by_warp<tell_colour>>;

/// Of a graph whose vertices the ranks have in turn.
struct extent {
  net::layout vertices;
  std::uint64_t ranks;
  std::uint64_t each;   ///< vertices of a rank, at most
  std::uint64_t edges;  ///< of a rank, at most; not 0

  extent(const csr_graph& g, std::uint32_t r)
      : vertices(g.vertices(), r, net::distribution::cyclic),
        ranks(r),
        each(std::max<std::uint64_t>(vertices.size_of(0), 1)),
        edges(1) {
    if (g.vertices() >= is_hub)
      throw error(errc::invalid_option,
                  "graph: it has " + std::to_string(g.vertices()) +
                      " vertices; on ranks it may have 2147483647, give a smaller one");
    std::vector<std::uint64_t> of_rank(ranks);
    for (std::uint64_t v = 0; v < g.vertices(); ++v) of_rank[v % ranks] += g.row[v + 1] - g.row[v];
    for (const std::uint64_t n : of_rank) edges = std::max(edges, n);
  }
};

/// Vertices to which so many edges lead that each rank has several of them.
struct hub_list {
  std::vector<std::uint32_t> vertices;
  std::vector<std::uint32_t> number;  ///< of each vertex: what edges to it have for target

  hub_list(const csr_graph& g, std::uint32_t ranks, bool any) : number(g.vertices()) {
    constexpr std::uint32_t from_a_rank = 2;
    for (const vertex to : g.column) ++number[to];
    for (vertex v = 0; v < g.vertices(); ++v) {
      if (any && number[v] >= from_a_rank * ranks) {
        number[v] = is_hub | static_cast<std::uint32_t>(vertices.size());
        vertices.push_back(v);
      } else {
        number[v] = v;
      }
    }
  }
};

/// The pieces of work of a rank, for sweep.
struct work_list {
  std::vector<std::uint32_t> shares{0};  ///< of vertices: where they begin, and the last one ends
  std::vector<std::uint32_t> large;
  std::vector<std::uint32_t> slices;

  work_list(const csr_graph& g, const extent& size, std::uint32_t rank) {
    constexpr std::uint32_t share_edges = 512;
    const auto n = static_cast<std::uint32_t>(size.vertices.size_of(rank));
    std::uint32_t begin = 0, some = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint64_t v = size.vertices.index_of({rank, i});
      const std::uint32_t edges = g.row[v + 1] - g.row[v];
      if (edges > slice_edges) {
        for (std::uint32_t e = 0; e < edges; e += slice_edges) {
          slices.push_back(begin + e);
          slices.push_back(static_cast<std::uint32_t>(large.size()));
        }
        large.push_back(i);
      }
      begin += edges;
      some += 1 + (edges > slice_edges ? 0 : edges);
      if (some < share_edges && i + 1 != n) continue;
      shares.push_back(i + 1);
      some = 0;
    }
  }
};

/// Lists of all ranks, as an array has them in blocks: each as long as the longest one.
std::vector<std::uint32_t> in_blocks(const std::vector<work_list>& all,
                                     std::vector<std::uint32_t> work_list::*which) {
  std::size_t most = 0;
  for (const work_list& w : all) most = std::max(most, (w.*which).size());
  std::vector<std::uint32_t> words;
  for (const work_list& w : all) {
    words.insert(words.end(), (w.*which).begin(), (w.*which).end());
    words.resize(words.size() + most - (w.*which).size());
  }
  return words;
}

std::vector<work_list> work_of(const csr_graph& g, const extent& size, bool any) {
  std::vector<work_list> all;
  for (std::uint32_t r = 0; any && r < size.ranks; ++r) all.emplace_back(g, size, r);
  return all;
}

std::uint32_t bits_of(float f) { return bits_as<std::uint32_t>(f); }
constexpr float infinity = std::numeric_limits<float>::infinity();

/// As graphs::sssp chooses it.
float choose_delta(const csr_graph& g) {
  double sum = 0;
  for (const float w : g.weight) sum += w;
  const double entries = std::max(g.entries(), 1u), vertices = std::max(g.vertices(), 1u);
  const double mean = g.weighted() ? sum / entries : 1, degree = entries / vertices;
  const double delta = (degree < 8 ? 128 : 32) * mean / std::max(degree, 1.0);
  return static_cast<float>(std::clamp<double>(delta, std::numeric_limits<float>::min(), 1e30));
}

}  // namespace

struct graph_on_ranks::state {
  const placement where;
  const extent size;
  const float delta;
  const hub_list hubs;
  const std::vector<work_list> work;  ///< of each rank; for colouring none
  graph_world world;
  net::array<std::uint64_t> parts;
  net::array<std::uint32_t> control, offsets, to_others, targets;
  net::array<float> weights;
  net::array<std::uint32_t> hub_vertices;
  net::array<std::uint32_t> shares, large, large_values, slices, slice_values;
  net::array<float> ranks, residuals, hub_sums;
  net::array<std::uint32_t> distances, gone_on, hub_distances;
  net::array<std::uint32_t> missing, used, colours;
  std::uint32_t rounds = 0;

  state(const placement& p, const csr_graph& g, algorithm what)
      : where(p),
        size(g, p.ranks),
        delta(choose_delta(g)),
        hubs(g, p.ranks, what != algorithm::colouring),
        work(work_of(g, size, what != algorithm::colouring)),
        world(ranks::ranks_of(p), {.link_bytes = p.link_bytes, .path = net::path::messages}),
        parts(world, size.ranks * words_of_part),
        control(world, size.ranks * control_words),
        offsets(world, size.ranks * (size.each + 1)),
        to_others(world, size.ranks * size.each),
        targets(world, size.ranks * size.edges),
        weights(world, what == algorithm::shortest_paths && g.weighted() ? targets.size() : 0),
        hub_vertices(world, size.ranks * hubs.vertices.size()),
        shares(world, in_blocks(work, &work_list::shares).size()),
        large(world, in_blocks(work, &work_list::large).size()),
        large_values(world, large.size()),
        slices(world, in_blocks(work, &work_list::slices).size()),
        slice_values(world, slices.size() / 2),
        ranks(world, of_vertices(what == algorithm::pagerank), net::distribution::cyclic),
        residuals(world, ranks.size(), net::distribution::cyclic),
        hub_sums(world, what == algorithm::pagerank ? hub_vertices.size() : 0),
        distances(world, of_vertices(what == algorithm::shortest_paths), net::distribution::cyclic),
        gone_on(world, distances.size(), net::distribution::cyclic),
        hub_distances(world, what == algorithm::shortest_paths ? hub_vertices.size() : 0),
        missing(world, of_vertices(what == algorithm::colouring), net::distribution::cyclic),
        used(world, missing.size() == 0 ? 0 : size.ranks * (size.edges / 32 + size.each + 1)),
        colours(world, missing.size(), net::distribution::cyclic) {
    lay_out(g);
    const part p0{.vertices = size.vertices,
                  .control = control.ref(),
                  .offsets = offsets.ref(),
                  .to_others = to_others.ref(),
                  .targets = targets.ref(),
                  .weights = weights.ref(),
                  .hubs = hub_vertices.ref(),
                  .shares = shares.ref(),
                  .large = large.ref(),
                  .large_values = large_values.ref(),
                  .slices = slices.ref(),
                  .slice_values = slice_values.ref(),
                  .ranks = ranks.ref(),
                  .residuals = residuals.ref(),
                  .hub_sums = hub_sums.ref(),
                  .distances = distances.ref(),
                  .gone_on = gone_on.ref(),
                  .hub_distances = hub_distances.ref(),
                  .missing = missing.ref(),
                  .used = used.ref(),
                  .colours = colours.ref()};
    std::vector<std::uint64_t> words(parts.size());
    for (std::uint64_t r = 0; r < size.ranks; ++r)
      __builtin_memcpy(words.data() + r * words_of_part, &p0, sizeof p0);
    parts.copy_from(words);
  }

  std::uint64_t of_vertices(bool are_there) const { return are_there ? size.vertices.size() : 0; }

  /// The edges of each rank to that rank; and hubs to all.
  void lay_out(const csr_graph& g) {
    std::vector<std::uint32_t> first(offsets.size()), others(to_others.size()), to(targets.size());
    std::vector<float> weight(weights.size());
    for (std::uint32_t r = 0; r < size.ranks; ++r) {
      const std::uint64_t edges = r * size.edges;
      std::uint64_t at = 0;
      const auto add = [&](std::uint64_t v, bool to_hubs) {
        for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e) {
          const std::uint32_t target = hubs.number[g.column[e]];
          if (((target & is_hub) != 0) != to_hubs) continue;
          to[edges + at] = target;
          if (!weight.empty()) weight[edges + at] = g.weight[e];
          ++at;
        }
      };
      for (std::uint64_t i = 0; i <= size.each; ++i) {
        first[r * (size.each + 1) + i] = static_cast<std::uint32_t>(at);
        if (i >= size.vertices.size_of(r)) continue;
        const std::uint64_t v = size.vertices.index_of({r, i});
        add(v, true);
        others[r * size.each + i] = static_cast<std::uint32_t>(at);
        add(v, false);
      }
    }
    to_others.copy_from(others);
    offsets.copy_from(first);
    targets.copy_from(to);
    weights.copy_from(weight);
    std::vector<std::uint32_t> all;
    for (std::uint64_t r = 0; r < size.ranks; ++r)
      all.insert(all.end(), hubs.vertices.begin(), hubs.vertices.end());
    hub_vertices.copy_from(all);
    shares.copy_from(in_blocks(work, &work_list::shares));
    large.copy_from(in_blocks(work, &work_list::large));
    slices.copy_from(in_blocks(work, &work_list::slices));
  }

  std::uint32_t number() const { return parts.ref().number(); }

  /// Hands each rank make(share) for shares of its vertices, and waits.
  template <class Make>
  void on_vertices(const Make& make) {
    ++rounds;
    ranks::share_out(world, size.each, where.where.is_cuda() ? 8'192 / where.ranks : 2, make);
  }

  /// That go over the vertices of a rank: about as many as it has.
  unsigned warps() const { return where.where.is_cuda() ? 12 * std::max(where.sms, 1u) : 1; }

  /// What ranks know when a run begins, and nothing else.
  std::vector<std::uint32_t> first_control() const {
    std::vector<std::uint32_t> words(control.size());
    for (std::size_t r = 0; r < work.size(); ++r) {
      std::uint32_t* const mine = words.data() + r * control_words;
      mine[control_shares] = static_cast<std::uint32_t>(work[r].shares.size()) - 1;
      mine[control_large] = static_cast<std::uint32_t>(work[r].large.size());
      mine[control_slices] = static_cast<std::uint32_t>(work[r].slices.size() / 2);
      // On a GPU that is some 500 us.
      mine[control_patience] = where.where.is_cuda() ? 200 * warps() : 50;
    }
    return words;
  }
  std::vector<std::uint32_t> read_control() const {
    std::vector<std::uint32_t> words(control.size());
    control.copy_to(words);
    return words;
  }

  /// Has all ranks go over their vertices, until none finds anything more to do in itself; whether
  /// one had found anything. What comes later from other ranks may be left.
  template <class Rule>
  bool sweep_all(const Rule& rule, std::vector<std::uint32_t>& words) {
    for (std::size_t r = 0; r < words.size(); r += control_words)
      words[r + control_quiet] = words[r + control_found] = 0;
    control.copy_from(words);
    ++rounds;
    ranks::on_all_ranks(world, warps(), [&](std::uint32_t) { return sweep<Rule>{rule, number()}; });
    words = read_control();
    bool found = false;
    for (std::size_t r = 0; r < words.size(); r += control_words)
      found = found || words[r + control_found] != 0;
    return found;
  }
};

graph_on_ranks::graph_on_ranks(const placement& p, const csr_graph& g, algorithm what)
    : state_(std::make_unique<state>(p, g, what)) {}
graph_on_ranks::~graph_on_ranks() = default;

void graph_on_ranks::pagerank(float damping, float tolerance) {
  state& s = *state_;
  s.rounds = 0;
  const auto n = static_cast<float>(s.size.vertices.size());
  std::vector<std::uint32_t> words = s.first_control();
  s.control.copy_from(words);
  s.on_vertices([&](const warp_share& some) {
    return begin_pagerank{some, s.number(), (1 - damping) / n};
  });
  const push_residuals push{damping, tolerance * (1 - damping) / (n + 1)};
  while (s.sweep_all(push, words)) continue;
}

std::vector<float> graph_on_ranks::ranks() const {
  std::vector<float> all(state_->ranks.size());
  state_->ranks.copy_to(all);
  double sum = 0;
  for (const float r : all) sum += r;
  if (sum > 0)
    for (float& r : all) r = static_cast<float>(r / sum);
  return all;
}

void graph_on_ranks::shortest_paths(vertex source, float delta) {
  state& s = *state_;
  if (!(delta > 0)) delta = s.delta;
  s.rounds = 0;
  std::vector<std::uint32_t> words = s.first_control();
  s.control.copy_from(words);
  s.on_vertices([&](const warp_share& some) {
    return begin_shortest_paths{some, s.number(), bits_of(infinity), source};
  });
  for (float bound = delta;;) {
    for (std::size_t r = 0; r < words.size(); r += control_words) {
      words[r + control_bound] = bits_of(bound);
      words[r + control_least] = bits_of(infinity);
    }
    s.sweep_all(relax_edges{}, words);
    s.on_vertices([&](const warp_share& some) { return find_least{some, s.number()}; });
    words = s.read_control();
    std::uint32_t least = bits_of(infinity);
    for (std::size_t r = 0; r < words.size(); r += control_words)
      least = std::min(least, words[r + control_least]);
    if (least == bits_of(infinity)) return;
    const auto nearest = bits_as<float>(least);  // below the bound, if that came last
    if (nearest >= bound) bound = std::max(nearest + delta, std::nextafter(nearest, infinity));
  }
}

std::vector<float> graph_on_ranks::distances() const {
  std::vector<std::uint32_t> bits(state_->distances.size());
  state_->distances.copy_to(bits);
  std::vector<float> all;
  all.reserve(bits.size());
  for (const std::uint32_t b : bits) all.push_back(bits_as<float>(b));
  return all;
}

void graph_on_ranks::colour() {
  state& s = *state_;
  s.rounds = 0;
  s.on_vertices([&](const warp_share& some) { return begin_colouring{some, s.number()}; });
  s.on_vertices([&](const warp_share& some) { return start_colouring{some, s.number()}; });
}

std::vector<std::uint32_t> graph_on_ranks::colours() const {
  std::vector<std::uint32_t> all(state_->colours.size());
  state_->colours.copy_to(all);
  return all;
}

std::uint32_t graph_on_ranks::rounds() const { return state_->rounds; }
std::vector<net::rank_stats> graph_on_ranks::stats() const { return state_->world.stats(); }

}  // namespace grosr::distributed
