// Chains, grids, Kronecker graphs and uniform random graphs.
#include "graph/io/generate.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string_view>

#include "graph/io/build.hpp"
#include "graph/io/memory.hpp"
#include "graph/io/words.hpp"
#include "graph/random.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::graphs {
namespace {

struct request {
  std::string text;  ///< all of it
  std::string_view first;
  host_threads& threads;
  std::uint64_t memory;
  std::uint64_t seed = 1, factor = 16, degree = 16;
  double removed = 0;
};

struct generator {
  std::string_view name, form;
  std::array<std::string_view, 2> options;
  csr_graph (*make)(const request& r, left_out& dropped);
};

[[noreturn]] void refuse(const request& r, std::string_view what) {
  throw error(errc::bad_input, fmt::format("{}: {}", one_line(r.text), what));
}

std::uint64_t number(const request& r, std::string_view what, std::string_view text,
                     std::uint64_t least, std::uint64_t most) {
  const auto n = scaled_number(text);
  if (!n || *n < least || *n > most)
    refuse(r, fmt::format("{} is \"{}\"; give a whole number from {} to {}, such as {}", what,
                          one_line(text), least, most,
                          most >= 50000 ? "50000 or 50k" : std::to_string(least)));
  return *n;
}

void fit(const request& r, const size_of_graph& size, std::uint64_t bytes) {
  require(size, bytes, r.memory, one_line(r.text));
}

/// A graph whose rows are known: degree(v), and fill(v, to) that writes so many, in ascending
/// order.
template <class Degree, class Fill>
csr_graph by_rows(const request& r, std::uint64_t vertices, Degree&& degree, Fill&& fill) {
  csr_graph g;
  g.directed = false;
  g.row.resize(vertices + 1);
  g.row[0] = 0;
  parallel_for(r.threads, vertices, [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t v = first; v < last; ++v) g.row[v + 1] = degree(v);
  });
  add_up(g.row, r.threads);
  g.column.resize(g.row[vertices]);
  parallel_for(r.threads, vertices, [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t v = first; v < last; ++v) fill(v, g.column.data() + g.row[v]);
  });
  return g;
}

csr_graph chain(const request& r, left_out&) {
  const std::uint64_t n = number(r, "N", r.first, 0, most_vertices);
  const size_of_graph size{n, n == 0 ? 0 : n - 1, false, true};
  fit(r, size, size.finished());
  const auto degree = [n](std::uint64_t v) { return std::uint32_t{v > 0} + (v + 1 < n); };
  return by_rows(r, n, degree, [n](std::uint64_t v, vertex* to) {
    if (v > 0) *to++ = static_cast<vertex>(v - 1);
    if (v + 1 < n) *to = static_cast<vertex>(v + 1);
  });
}

csr_graph grid(const request& r, left_out&) {
  const std::size_t cross = r.first.find('x');
  if (cross == std::string_view::npos)
    refuse(r, fmt::format("\"{}\" is no size; give ROWSxCOLUMNS", one_line(r.first)));
  const std::uint64_t rows = number(r, "ROWS", r.first.substr(0, cross), 1, most_vertices);
  const std::uint64_t columns = number(r, "COLUMNS", r.first.substr(cross + 1), 1, most_vertices);
  const std::uint64_t n = rows * columns;
  const size_of_graph size{n, (rows - 1) * columns + rows * (columns - 1), false, true};
  fit(r, size, size.finished());
  const random_sequence random(r.seed);
  const auto least = static_cast<std::uint64_t>(r.removed * 0x1p32);
  // The edge of v to the right has number 2 v, and that downwards 2 v + 1.
  const auto there = [&](std::uint64_t e) { return random[e] >> 32 >= least; };
  const auto each = [&](std::uint64_t v, auto&& f) {
    const std::uint64_t column = v % columns;
    if (v >= columns && there(2 * (v - columns) + 1)) f(v - columns);
    if (column > 0 && there(2 * (v - 1))) f(v - 1);
    if (column + 1 < columns && there(2 * v)) f(v + 1);
    if (v + columns < n && there(2 * v + 1)) f(v + columns);
  };
  const auto degree = [&](std::uint64_t v) {
    std::uint32_t d = 0;
    each(v, [&](std::uint64_t) { ++d; });
    return d;
  };
  return by_rows(r, n, degree, [&](std::uint64_t v, vertex* to) {
    each(v, [&](std::uint64_t w) { *to++ = static_cast<vertex>(w); });
  });
}

/// Undirected edges make(i), i < count.
template <class Make>
csr_graph by_edges(const request& r, std::uint64_t vertices, std::uint64_t count, left_out& dropped,
                   Make&& make) {
  const size_of_graph size{vertices, count, false, true};
  fit(r, size, size.to_build());
  edge_list::block all;
  all.edges.resize(count);
  parallel_for(r.threads, count, [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i < last; ++i) all.edges[i] = make(i);
  });
  edge_list list;
  list.add(std::move(all));
  return build(std::move(list), static_cast<vertex>(vertices), false, dropped, r.threads);
}

/// A bijection of the numbers of `bits` bits: rounds of what bijects them.
class shuffle {
 public:
  shuffle(unsigned bits, const random_sequence& random, std::uint64_t first)
      : mask_((std::uint64_t{1} << bits) - 1), shift_((bits + 1) / 2) {
    for (unsigned i = 0; i < rounds; ++i) {
      factor_[i] = random[first + 2 * i] | 1;
      add_[i] = random[first + 2 * i + 1];
    }
  }
  vertex operator()(std::uint64_t v) const {
    for (unsigned i = 0; i < rounds; ++i) {
      v = (v * factor_[i] + add_[i]) & mask_;
      v ^= v >> shift_;
    }
    return static_cast<vertex>(v);
  }

 private:
  static constexpr unsigned rounds = 3;
  std::uint64_t mask_;
  unsigned shift_;
  std::uint64_t factor_[rounds], add_[rounds];
};

/// Draws four levels of the recursion at a time: one of 256 parts of the matrix, by its probability
/// (Walker's table). The parts are numbered by four bits of the row, then four of the column.
class four_levels {
 public:
  four_levels() {
    constexpr std::uint64_t quadrant[4] = {57, 19, 19, 5}, all = 100'000'000;
    std::uint64_t left[256];  // of 256 * all
    for (unsigned part = 0; part < 256; ++part) {
      left[part] = 256;
      for (unsigned level = 0; level < 4; ++level)
        left[part] *= quadrant[(part >> (4 + level) & 1) * 2 + (part >> level & 1)];
    }
    bool filled[256] = {};
    for (unsigned cells = 0; cells < 256; ++cells) {
      unsigned least = 0, most = 0;
      for (unsigned part = 0; part < 256; ++part) {
        if (filled[part]) continue;
        if (filled[least] || left[part] < left[least]) least = part;
        if (filled[most] || left[part] > left[most]) most = part;
      }
      filled[least] = true;
      cells_[least] = {static_cast<std::uint32_t>((std::min(left[least], all) << 24) / all), most};
      left[most] -= all - std::min(left[least], all);
    }
  }
  unsigned operator()(std::uint32_t random) const {
    const cell& c = cells_[random >> 24];
    return (random & 0xff'ffff) < c.own ? random >> 24 : c.other;
  }

 private:
  struct cell {
    std::uint32_t own;  ///< of 2^24: the share of the part with the cell's number
    unsigned other;
  };
  cell cells_[256];
};

csr_graph kronecker(const request& r, left_out& dropped) {
  const auto scale = static_cast<unsigned>(number(r, "SCALE", r.first, 0, 31));
  const random_sequence random(r.seed);
  const shuffle shuffled(scale, random, 0);
  const four_levels draw;
  const unsigned groups = (scale + 3) / 4, surplus = groups * 4 - scale;
  const auto make = [&](std::uint64_t i) {
    std::uint64_t from = 0, to = 0, drawn = 0;
    for (unsigned g = 0; g < groups; ++g, drawn >>= 32) {
      if (g % 2 == 0) drawn = random[(i + 1) * 8 + g / 2];  // the first ones shuffle
      const unsigned part = draw(static_cast<std::uint32_t>(drawn));
      from = from << 4 | part >> 4;
      to = to << 4 | (part & 15);
    }
    return edge{shuffled(from >> surplus), shuffled(to >> surplus)};
  };
  return by_edges(r, std::uint64_t{1} << scale, r.factor << scale, dropped, make);
}

csr_graph uniform(const request& r, left_out& dropped) {
  const std::uint64_t n = number(r, "N", r.first, 0, most_vertices);
  const random_sequence random(r.seed);
  return by_edges(r, n, n * r.degree / 2, dropped, [=](std::uint64_t i) {
    return edge{below(random[2 * i], n), below(random[2 * i + 1], n)};
  });
}

constexpr generator generators[] = {
    {"chain", "chain:N", {}, chain},
    {"grid", "grid:ROWSxCOLUMNS[,removed=P][,seed=S]", {"removed", "seed"}, grid},
    {"kronecker", "kronecker:SCALE[,factor=F][,seed=S]", {"factor", "seed"}, kronecker},
    {"random", "random:N[,degree=D][,seed=S]", {"degree", "seed"}, uniform},
};

double share(const request& r, std::string_view text) {
  double p = -1;
  const char* const end = text.data() + text.size();
  const auto [at, bad] = std::from_chars(text.data(), end, p);
  if (bad != std::errc() || at != end || !(p >= 0 && p <= 0.9))
    refuse(r, fmt::format("removed is \"{}\"; give a share from 0 to 0.9", one_line(text)));
  return p;
}

void read_option(request& r, const generator& g, std::string_view option) {
  const std::size_t equals = std::min(option.find('='), option.size());
  const std::string_view key = option.substr(0, equals);
  if (key.empty() || equals == option.size() ||
      std::find(g.options.begin(), g.options.end(), key) == g.options.end())
    refuse(r, fmt::format("\"{}\" is no option of it; give {}", one_line(option), g.form));
  const std::string_view value = option.substr(equals + 1);
  constexpr std::uint64_t most_seed = ~std::uint64_t{0};
  if (key == "seed")
    r.seed = number(r, key, value, 0, most_seed);
  else if (key == "removed")
    r.removed = share(r, value);
  else
    (key == "factor" ? r.factor : r.degree) = number(r, key, value, 0, most_entries);
}

}  // namespace

std::optional<csr_graph> generate(const std::string& text, host_threads& threads,
                                  std::uint64_t memory, left_out& dropped) {
  const std::string_view all = text;
  const std::size_t colon = all.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  for (const generator& g : generators) {
    if (all.substr(0, colon) != g.name) continue;
    request r{text, {}, threads, memory};
    std::string_view rest = all.substr(colon + 1);
    const auto field = [&rest] {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const std::string_view f = rest.substr(0, comma);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
      return f;
    };
    r.first = field();
    if (r.first.empty()) refuse(r, fmt::format("no size; give {}", g.form));
    if (text.back() == ',') refuse(r, fmt::format("ends in a comma; give {}", g.form));
    while (!rest.empty()) read_option(r, g, field());
    return g.make(r, dropped);
  }
  return std::nullopt;
}

}  // namespace grosr::graphs
