// The host's side: where vertices and edges lie, and rounds.
#include <algorithm>
#include <cmath>
#include <limits>

#include "colouring_tasks.hpp"
#include "graph_on_ranks.hpp"
#include "pagerank_tasks.hpp"
#include "shortest_path_tasks.hpp"

namespace grosr::distributed {
namespace {

using graphs::csr_graph, graphs::vertex;

// One type of world for all algorithms: each takes nvcc a minute.
using graph_world = net::world<begin_pagerank, push_residuals, edges_by_warp<push_share>,
                               begin_shortest_paths, relax, edges_by_warp<relax_edge>, release,
                               begin_colouring, edges_by_warp<count_neighbour>, start_colouring,
                               coloured, edges_by_warp<tell_colour>>;

std::vector<net::rank_options> ranks_of(const placement& p) {
  net::rank_options r{.where = p.where};
  r.runtime.sms = p.sms;
  r.runtime.blocks_per_sm = p.blocks_per_sm;
  // Tasks that wait are messages mostly; there may be one for each edge.
  r.runtime.memory_limit = p.where.is_cuda()
                               ? std::max(std::size_t{32} << 20, (std::size_t{2} << 30) / p.ranks)
                               : std::size_t{16} << 20;
  return std::vector<net::rank_options>(p.ranks, r);
}

/// Of a graph that lies on ranks in blocks.
struct extent {
  std::uint64_t ranks, vertices;
  std::uint64_t each;   ///< vertices of a rank, at most
  std::uint64_t edges;  ///< of a rank, at most; not 0

  extent(const csr_graph& g, std::uint32_t r)
      : ranks(r),
        vertices(g.vertices()),
        each(std::max<std::uint64_t>((vertices + r - 1) / r, 1)),
        edges(1) {
    for (std::uint64_t i = 0; i < ranks; ++i)
      edges = std::max<std::uint64_t>(edges, g.row[end(i)] - g.row[begin(i)]);
  }
  std::uint64_t begin(std::uint64_t rank) const { return std::min(rank * each, vertices); }
  std::uint64_t end(std::uint64_t rank) const { return begin(rank + 1); }
};

std::uint32_t bits_of(float f) { return bits_as<std::uint32_t>(f); }
constexpr float infinity = std::numeric_limits<float>::infinity();

/// As graphs::sssp chooses it, but a quarter of that where degrees are large: tasks run newest
/// first, and relax more in vain than steps do that go level by level.
float choose_delta(const csr_graph& g) {
  double sum = 0;
  for (const float w : g.weight) sum += w;
  const double entries = std::max(g.entries(), 1u), vertices = std::max(g.vertices(), 1u);
  const double mean = g.weighted() ? sum / entries : 1, degree = entries / vertices;
  const double delta = (degree < 8 ? 128 : 8) * mean / std::max(degree, 1.0);
  return static_cast<float>(std::clamp<double>(delta, std::numeric_limits<float>::min(), 1e30));
}

}  // namespace

struct graph_on_ranks::state {
  const placement where;
  const extent size;
  const float delta;
  graph_world world;
  net::array<std::uint64_t> parts;
  net::array<std::uint32_t> control, offsets, targets;
  net::array<float> weights, ranks, residuals;
  net::array<std::uint32_t> distances, gone_on, listed, lists, missing, used, colours;
  std::uint32_t rounds = 0;

  state(const placement& p, const csr_graph& g, algorithm what)
      : where(p),
        size(g, p.ranks),
        delta(choose_delta(g)),
        world(ranks_of(p), {.link_bytes = p.link_bytes, .path = net::path::messages}),
        parts(world, size.ranks * words_of_part),
        control(world, size.ranks * control_words),
        offsets(world, size.ranks * (size.each + 1)),
        targets(world, size.ranks * size.edges),
        weights(world, what == algorithm::shortest_paths && g.weighted() ? targets.size() : 0),
        ranks(world, what == algorithm::pagerank ? size.vertices : 0),
        residuals(world, ranks.size()),
        distances(world, what == algorithm::shortest_paths ? size.vertices : 0),
        gone_on(world, distances.size()),
        listed(world, distances.size()),
        lists(world, distances.size() == 0 ? 0 : size.ranks * size.each * 2),
        missing(world, what == algorithm::colouring ? size.vertices : 0),
        used(world, missing.size() == 0 ? 0 : size.ranks * (size.edges / 32 + size.each + 1)),
        colours(world, missing.size()) {
    lay_out(g);
    const part p0{net::layout(size.vertices, p.ranks, net::distribution::block),
                  control.ref(),
                  offsets.ref(),
                  targets.ref(),
                  weights.ref(),
                  ranks.ref(),
                  residuals.ref(),
                  distances.ref(),
                  gone_on.ref(),
                  listed.ref(),
                  lists.ref(),
                  missing.ref(),
                  used.ref(),
                  colours.ref()};
    std::vector<std::uint64_t> words(parts.size());
    for (std::uint64_t r = 0; r < size.ranks; ++r)
      __builtin_memcpy(words.data() + r * words_of_part, &p0, sizeof p0);
    parts.copy_from(words);
  }

  /// The edges of each rank to that rank.
  void lay_out(const csr_graph& g) {
    std::vector<std::uint32_t> first(offsets.size()), to(targets.size());
    std::vector<float> weight(weights.size());
    for (std::uint64_t r = 0; r < size.ranks; ++r) {
      const std::uint64_t begin = size.begin(r), end = size.end(r);
      const std::uint32_t before = g.row[begin];
      for (std::uint64_t i = 0; i <= size.each; ++i)
        first[r * (size.each + 1) + i] = g.row[std::min(begin + i, end)] - before;
      std::copy(g.column.begin() + before, g.column.begin() + g.row[end],
                to.begin() + static_cast<std::ptrdiff_t>(r * size.edges));
      if (!weight.empty())
        std::copy(g.weight.begin() + before, g.weight.begin() + g.row[end],
                  weight.begin() + static_cast<std::ptrdiff_t>(r * size.edges));
    }
    offsets.copy_from(first);
    targets.copy_from(to);
    weights.copy_from(weight);
  }

  std::uint32_t number() const { return parts.ref().number(); }

  /// Hands a rank make(share) for each share of so many vertices.
  template <class Make>
  void submit_shares(std::uint32_t rank, std::uint64_t count, const Make& make) {
    const std::uint64_t most = where.where.is_cuda() ? std::max(16'384 / where.ranks, 256u) : 2;
    const auto warps = static_cast<std::uint32_t>(std::min((count + 31) / 32, most));
    std::vector<decltype(make(warp_share{}))> all;
    for (std::uint32_t i = 0; i < warps; ++i) all.push_back(make(warp_share{i, warps}));
    if (!all.empty()) world.submit(rank, all);
  }
  /// The same for all vertices of all ranks; and waits until all is done.
  template <class Make>
  void on_vertices(const Make& make) {
    for (std::uint32_t r = 0; r < where.ranks; ++r)
      submit_shares(r, size.end(r) - size.begin(r), make);
    wait();
  }
  void wait() {
    ++rounds;
    world.wait_all();
  }

  std::vector<std::uint32_t> read_control() const {
    std::vector<std::uint32_t> words(control.size());
    control.copy_to(words);
    return words;
  }
  /// The word `what` of all ranks.
  static std::uint64_t sum_of(const std::vector<std::uint32_t>& words, std::uint32_t what) {
    std::uint64_t sum = 0;
    for (std::size_t r = 0; r < words.size(); r += control_words) sum += words[r + what];
    return sum;
  }
};

graph_on_ranks::graph_on_ranks(const placement& p, const csr_graph& g, algorithm what)
    : state_(std::make_unique<state>(p, g, what)) {}
graph_on_ranks::~graph_on_ranks() = default;

void graph_on_ranks::pagerank(float damping, float tolerance) {
  state& s = *state_;
  s.rounds = 0;
  const auto n = static_cast<float>(s.size.vertices);
  s.control.copy_from(std::vector<std::uint32_t>(s.control.size()));
  s.on_vertices([&](const warp_share& some) {
    return begin_pagerank{some, s.number(), (1 - damping) / n};
  });
  for (std::uint64_t before = ~std::uint64_t{0}, pushed = 0; pushed != before;) {
    before = pushed;
    s.on_vertices([&](const warp_share& some) {
      return push_residuals{some, s.number(), damping, tolerance * (1 - damping) / (n + 1)};
    });
    pushed = state::sum_of(s.read_control(), control_pushed);
  }
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
  const auto begin_round = [&](float bound, std::uint32_t list, std::vector<std::uint32_t> words) {
    for (std::size_t r = 0; r < words.size(); r += control_words) {
      words[r + control_bound] = bits_of(bound);
      words[r + control_least] = bits_of(infinity);
      words[r + control_list] = list;
      words[r + control_count + list] = 0;
    }
    s.control.copy_from(words);
  };
  std::uint32_t list = 0;
  begin_round(delta, list, std::vector<std::uint32_t>(s.control.size()));
  s.on_vertices([&](const warp_share& some) {
    return begin_shortest_paths{some, s.number(), bits_of(infinity)};
  });
  const net::place at =
      net::layout(s.size.vertices, s.where.ranks, net::distribution::block).find(source);
  s.world.submit(at.rank, relax{static_cast<std::uint32_t>(at.offset), 0, s.number()});
  for (;;) {
    s.wait();
    const std::vector<std::uint32_t> words = s.read_control();
    if (state::sum_of(words, control_count + list) == 0) return;
    std::uint32_t least = bits_of(infinity);
    for (std::size_t r = 0; r < words.size(); r += control_words)
      least = std::min(least, words[r + control_least]);
    const std::uint32_t full = std::exchange(list, 1 - list);
    const float nearest = bits_as<float>(least);
    begin_round(std::max(nearest + delta, std::nextafter(nearest, infinity)), list, words);
    for (std::uint32_t r = 0; r < s.where.ranks; ++r) {
      const std::uint32_t count = words[r * control_words + control_count + full];
      s.submit_shares(r, count, [&](const warp_share& some) {
        return release{some, s.number(), count, full};
      });
    }
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
