// Files for tests of the input: graphs as text in every format, compressed, and what reading gives.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "graph/io/binary.hpp"
#include "graph/io/read.hpp"
#include "grosr/graph/io/input.hpp"
#include "grosr/simt/error.hpp"
#include "small_graphs.hpp"

namespace grosr::graphs {

/// A folder of its own, removed with what is in it.
class folder {
 public:
  folder() {
    std::string name = (std::filesystem::temp_directory_path() / "grosr-graphs-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~folder() { std::filesystem::remove_all(path_); }
  folder(const folder&) = delete;

  std::string at(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
  }
  std::string content(const std::string& name) const {
    std::ifstream file(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

inline std::string gzipped(const std::string& text) {
  z_stream z{};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  std::string out(deflateBound(&z, text.size()) + 64, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  z.avail_in = static_cast<uInt>(text.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  if (deflate(&z, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

/// The shortest text that reads as the same float.
inline std::string text_of(float x) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

/// Calls f(from, to, weight) for each edge, once where the graph is undirected: from the larger.
template <class F>
void each_edge(const csr_graph& g, F&& f) {
  for (vertex v = 0; v < g.vertices(); ++v)
    for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e)
      if (g.directed || v > g.column[e]) f(v, g.column[e], weight_of(g, e));
}

inline std::string as_edge_list(const csr_graph& g, const std::string& between = " ") {
  std::string text = "# a comment\n";
  each_edge(g, [&](vertex from, vertex to, float weight) {
    text += std::to_string(from) + between + std::to_string(to);
    if (g.weighted()) text += between + text_of(weight);
    text += '\n';
  });
  return text;
}

inline std::string as_matrix_market(const csr_graph& g) {
  std::string text = std::string("%%MatrixMarket matrix coordinate ") +
                     (g.weighted() ? "real " : "pattern ") +
                     (g.directed ? "general\n% a comment\n" : "symmetric\n%\n\n");
  const std::string n = std::to_string(g.vertices());
  text += n + " " + n + " " + std::to_string(g.edges()) + "\n";
  each_edge(g, [&](vertex from, vertex to, float weight) {
    text += std::to_string(from + 1) + " " + std::to_string(to + 1);
    if (g.weighted()) text += " " + text_of(weight);
    text += '\n';
  });
  return text;
}

inline std::string as_dimacs(const csr_graph& g) {
  std::string text =
      "c a comment\np sp " + std::to_string(g.vertices()) + " " + std::to_string(g.edges()) + "\n";
  each_edge(g, [&](vertex from, vertex to, float weight) {
    text += "a " + std::to_string(from + 1) + " " + std::to_string(to + 1) + " " + text_of(weight) +
            "\n";
  });
  return text;
}

/// A few bytes at a time, on so many threads.
inline reading in_small_chunks(std::size_t chunk, unsigned threads) {
  reading how;
  how.threads = threads;
  how.chunk = chunk;
  how.piece = 1;
  how.memory = std::uint64_t{64} << 20;
  return how;
}

/// As broken(), on so many threads.
inline std::string wrong_with(const csr_graph& g, unsigned count) {
  const host_work how{count};
  host_threads threads(how);
  return broken(g, threads);
}

inline void expect_same(const csr_graph& got, const csr_graph& expected) {
  EXPECT_EQ(got.row, expected.row);
  EXPECT_EQ(got.column, expected.column);
  EXPECT_EQ(got.weight, expected.weight);
  EXPECT_EQ(got.directed, expected.directed);
}

/// The text of the error that f throws, without `prefix`.
inline std::string refusal(const std::function<void()>& f, const std::string& prefix = "") {
  try {
    f();
  } catch (const error& e) {
    std::string text = e.what();
    EXPECT_TRUE(text.starts_with(prefix)) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text.substr(std::min(prefix.size(), text.size()));
  }
  return "nothing";
}

/// All that every graph obeys, in the plainest way.
inline void expect_graph(const csr_graph& g) {
  ASSERT_FALSE(g.row.empty());
  ASSERT_EQ(g.row[0], 0u);
  ASSERT_EQ(g.row[g.vertices()], g.column.size());
  if (!g.weight.empty()) {
    ASSERT_EQ(g.weight.size(), g.column.size());
  }
  std::map<std::pair<vertex, vertex>, float> all;
  for (vertex v = 0; v < g.vertices(); ++v) {
    ASSERT_LE(g.row[v], g.row[v + 1]);
    for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e) {
      ASSERT_LT(g.column[e], g.vertices());
      ASSERT_NE(g.column[e], v);
      if (e > g.row[v]) {
        ASSERT_LT(g.column[e - 1], g.column[e]);
      }
      const float w = weight_of(g, e);
      ASSERT_TRUE(w >= 0 && w < std::numeric_limits<float>::infinity() && !std::signbit(w));
      all[{v, g.column[e]}] = w;
    }
  }
  if (g.directed) return;
  for (const auto& [ends, w] : all) {
    const auto back = all.find({ends.second, ends.first});
    ASSERT_TRUE(back != all.end() && back->second == w);
  }
}

}  // namespace grosr::graphs
