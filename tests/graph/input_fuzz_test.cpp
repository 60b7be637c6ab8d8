// Whatever the bytes are, reading gives a graph, or one line that says what is wrong with them.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "input_files.hpp"
#include "support/scale.hpp"

namespace grosr::graphs {
namespace {

class mutator {
 public:
  explicit mutator(std::uint64_t seed) : random_(seed) {}

  std::size_t below(std::size_t n) { return random_() % std::max<std::size_t>(n, 1); }

  void mutate(std::string& s) {
    const std::size_t at = below(s.size() + 1),
                      n = below(std::min<std::size_t>(s.size() - at, 40) + 1);
    switch (below(9)) {
      case 0:
        if (at < s.size()) s[at] = static_cast<char>(s[at] ^ (1 << below(8)));
        break;
      case 1:
        s.resize(at);
        break;
      case 2:
        s.erase(at, n);
        break;
      case 3:  // splice
        s.insert(below(s.size() + 1), s.substr(at, n));
        break;
      case 4: {  // the same line again
        const std::size_t first = s.rfind('\n', at) + 1, last = s.find('\n', at);
        s.insert(first, s.substr(first, last == std::string::npos ? last : last + 1 - first));
        break;
      }
      case 5:
        s.insert(at, words[below(std::size(words))]);
        break;
      case 6: {  // another number
        const std::size_t first = s.find_first_of("0123456789", at);
        if (first == std::string::npos) break;
        const std::size_t last = std::min(s.find_first_not_of("0123456789", first), s.size());
        s.replace(first, last - first, words[below(std::size(words))]);
        break;
      }
      case 7:
        s.insert(at, 1, static_cast<char>(below(256)));
        break;
      default:  // bytes of a binary number
        for (std::size_t i = at; i < std::min(s.size(), at + (1u << below(4))); ++i)
          s[i] = below(2) == 0 ? '\xff' : '\0';
    }
  }

 private:
  static constexpr const char* words[] = {"0",
                                          "1",
                                          "-1",
                                          "4294967293",
                                          "4294967294",
                                          "18446744073709551616",
                                          "99999999999999999999999",
                                          "1e",
                                          "nan",
                                          "inf",
                                          "1e39",
                                          "-0",
                                          "1e-320",
                                          "0x1p3",
                                          " ",
                                          ",",
                                          "\n",
                                          "\r\n",
                                          "#",
                                          "%",
                                          "\n\n",
                                          "\t",
                                          "a ",
                                          "c ",
                                          "p sp 3 3\n",
                                          "+",
                                          ".",
                                          "2 3 4\n",
                                          "%%MatrixMarket matrix coordinate pattern symmetric\n"};
  std::mt19937_64 random_;
};

/// The checksums of a binary file made right, so that what is behind them is reached.
void seal(std::string& s) {
  if (s.size() < 64) return;
  const auto sum = [&](std::size_t first, std::size_t n) {
    return std::uint64_t{
        crc32(0, reinterpret_cast<const Bytef*>(s.data()) + first, static_cast<uInt>(n))};
  };
  const std::uint64_t data = sum(64, s.size() - 64);
  std::memcpy(s.data() + 40, &data, 8);
  const std::uint64_t header = sum(0, 48);
  std::memcpy(s.data() + 48, &header, 8);
}

std::vector<std::string> seeds(const folder& f) {
  std::vector<std::string> all;
  for_small_graphs(24, 24, 12, [&](const csr_graph& g) {
    all.push_back(as_edge_list(g, g.first == 0 ? " " : ","));
    all.push_back(as_matrix_market(g));
    all.push_back(as_dimacs(g));
    write_binary(g, f.at("binary"));
    all.push_back(f.content("binary"));
  });
  return all;
}

TEST(graph_fuzz, any_bytes_are_a_graph_or_refused_in_one_line) {
  const folder f;
  const auto good = seeds(f);
  std::uint64_t graphs = 0, refused = 0;
  for (std::uint64_t round = 0; round < testing::scaled(20'000, 500); ++round) {
    mutator m(round);
    std::string content = good[m.below(good.size())];
    if (m.below(8) == 0)
      content = content.substr(0, m.below(content.size())) + good[m.below(good.size())];
    for (std::size_t n = 1 + m.below(3); n > 0; --n) m.mutate(content);
    if (content.starts_with("GROSRCSR") && m.below(4) != 0) seal(content);
    if (m.below(6) == 0) {
      content = gzipped(content);
      if (m.below(2) == 0) m.mutate(content);
    }
    const std::string path = f.write("fuzzed", content);
    input_options options;
    if (m.below(4) == 0) options.edges = symmetry::undirected;
    if (m.below(4) == 0) options.random_weights = round + 1;
    const reading how =
        in_small_chunks(m.below(3) == 0 ? 1 << 16 : 1 + m.below(100), m.below(8) == 0 ? 4 : 1);
    SCOPED_TRACE("round " + std::to_string(round));
    try {
      const csr_graph g = load(path, options, how).g;
      ++graphs;
      // The largest are rows without edges that fit into what memory there was said to be.
      if (g.vertices() < 100'000) expect_graph(g);
    } catch (const error& e) {
      const std::string text = e.what();
      ++refused;
      ASSERT_TRUE(text.starts_with(path + ":")) << text;
      ASSERT_EQ(std::count_if(text.begin(), text.end(),
                              [](char c) { return static_cast<unsigned char>(c) < ' '; }),
                0)
          << text;
      ASSERT_LT(text.size(), 400u) << text;
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(graphs, 50u);
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace grosr::graphs
