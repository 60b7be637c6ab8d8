// Every format gives the graph that was written, however it is cut into chunks and threads.
#include <gtest/gtest.h>

#include "graph/io/binary.hpp"
#include "input_files.hpp"

namespace grosr::graphs {
namespace {

csr_graph read(const folder& f, const std::string& content, const input_options& options = {},
               std::size_t chunk = 1 << 20, unsigned threads = 1) {
  return load(f.write("graph", content), options, in_small_chunks(chunk, threads)).g;
}

TEST(graph_input, formats_round_trip_through_all_chunks_and_threads) {
  const folder f;
  for_small_graphs(60, 15, 24, [&](const csr_graph& g) {
    std::vector<std::string> texts{as_matrix_market(g)};
    if (g.weighted() && g.directed) texts.push_back(as_dimacs(g));
    for (const std::string& text : texts)
      for (const std::size_t chunk : {1, 7, 64, 1 << 20})
        for (const unsigned threads : {1u, 4u})
          for (const std::string& content : {text, gzipped(text)}) {
            const csr_graph got = read(f, content, {}, chunk, threads);
            expect_same(got, g);
            EXPECT_EQ(got.first, 1u);
          }
  });
}

TEST(graph_input, edge_lists_have_as_many_vertices_as_their_greatest_number_says) {
  const folder f;
  for_small_graphs(60, 15, 24, [&](const csr_graph& g) {
    vertex greatest = 0;
    each_edge(g, [&](vertex a, vertex b, float) { greatest = std::max({greatest, a, b}); });
    input_options options;
    if (!g.directed) options.edges = symmetry::undirected;
    for (const char* const between : {" ", "\t", ",", " , ", "  \t"})
      for (const std::size_t chunk : {5, 1 << 20}) {
        csr_graph got = read(f, as_edge_list(g, between), options, chunk, 4);
        EXPECT_EQ(got.vertices(), g.edges() == 0 ? 0 : greatest + 1);
        while (got.vertices() < g.vertices()) got.row.push_back(got.row.back());
        expect_same(got, g);
      }
  });
}

TEST(graph_input, binary_files_round_trip) {
  const folder f;
  for_small_graphs(60, 15, 40, [&](const csr_graph& g) {
    write_binary(g, f.at("binary"));
    for (const unsigned threads : {1u, 4u})
      for (const std::string& content : {f.content("binary"), gzipped(f.content("binary"))}) {
        const csr_graph got = read(f, content, {}, 1 << 20, threads);
        expect_same(got, g);
        EXPECT_EQ(got.first, g.first);
        EXPECT_EQ(wrong_with(got, threads), "");
      }
  });
}

TEST(graph_input, larger_graphs_are_the_same_for_all_threads_and_formats) {
  const folder f;
  for (const char* const name : {"random:3000,degree=64", "kronecker:12", "grid:100x70"})
    for (const std::uint64_t seed : {0, 7}) {
      const input_options weights{.random_weights = seed};
      const csr_graph g = load(name, weights, in_small_chunks(1 << 20, 1)).g;
      expect_graph(g);
      expect_same(load(name, weights, in_small_chunks(1 << 20, 4)).g, g);
      const std::string text = as_matrix_market(g);
      for (const unsigned threads : {1u, 4u})
        for (const std::size_t chunk : {1000, 1 << 20})
          expect_same(read(f, text, {}, chunk, threads), g);
      write_binary(g, f.at("binary"));
      expect_same(load(f.at("binary")).g, g);
      expect_same(read(f, gzipped(f.content("binary"))), g);
    }
}

TEST(graph_input, lines_end_in_any_way) {
  const folder f;
  const csr_graph expected = make_graph(4, {{0, 1}, {1, 2}, {3, 0}}, true);
  for (const std::string text :
       {"0 1\n1 2\n3 0\n", "0 1\n1 2\n3 0", "0 1\r\n1 2\r\n3 0\r\n", "0 1\r\n1 2\r\n3 0",
        "\n\n0 1\n  \n1 2 \t\r\n\t3 0\n\n", "# c\n%c\n0 1# c\n1 2 % 9\n#3 1\n3,0 #", "00 +1\n"})
    for (const std::size_t chunk : {1, 2, 3, 100}) {
      if (text == "00 +1\n") {  // a sign is no part of a vertex
        EXPECT_NE(refusal([&] { read(f, text, {}, chunk); }), "nothing");
        continue;
      }
      expect_same(read(f, text, {}, chunk, 4), expected);
    }
}

TEST(graph_input, loops_and_duplicates_are_dropped_and_counted) {
  const folder f;
  const std::string path = f.write("g", "0 1 5\n1 0 3\n2 2 1\n0 1 4\n0 1 4\n3 3 0\n");
  for (const unsigned threads : {1u, 4u}) {
    loaded got = load(path, {}, in_small_chunks(4, threads));
    expect_same(got.g, make_graph(4, {{0, 1, 4}, {1, 0, 3}}, true, weights::any));
    EXPECT_EQ(got.dropped.loops, 2u);
    EXPECT_EQ(got.dropped.duplicates, 2u);
    got = load(path, {.edges = symmetry::undirected}, in_small_chunks(4, threads));
    expect_same(got.g, make_graph(4, {{0, 1, 3}}, false, weights::any));
    EXPECT_EQ(got.dropped.loops, 2u);
    EXPECT_EQ(got.dropped.duplicates, 3u);
  }
}

TEST(graph_input, weights_are_the_nearest_floats) {
  const folder f;
  const std::vector<std::pair<const char*, float>> numbers{
      {"0", 0.f},
      {"-0", 0.f},
      {"-0.0e5", 0.f},
      {"1", 1.f},
      {"+2.5", 2.5f},
      {"16777217", 16777216.f},
      {"0.1", 0.1f},
      {"1e-60", 0.f},
      {"3.4028235e38", 3.4028235e38f},
      {"1.5E3", 1500.f},
      {".5", 0.5f},
      {"7.", 7.f},
      {"123456789012345678901", 123456789012345678901.f},
      {"1e-40", 1e-40f}};
  for (const auto& [text, weight] : numbers) {
    const csr_graph g = read(f, std::string("0 1 ") + text + "\n");
    ASSERT_EQ(g.weight.size(), 1u) << text;
    EXPECT_EQ(g.weight[0], weight) << text;
    EXPECT_FALSE(std::signbit(g.weight[0])) << text;
  }
}

TEST(graph_input, graphs_may_be_empty) {
  const folder f;
  for (const std::string text : {"%%MatrixMarket matrix coordinate pattern general\n0 0 0\n",
                                 "p sp 0 0\n", "# nothing\n", "\n"}) {
    const csr_graph g = read(f, text);
    expect_graph(g);
    EXPECT_EQ(g.vertices(), 0u) << text;
  }
  for (const std::string text :
       {"%%MatrixMarket matrix coordinate real symmetric\n5 5 0", "c\np sp 5 0", "4 4\n"}) {
    const csr_graph g = read(f, text);
    expect_graph(g);
    EXPECT_EQ(g.vertices(), 5u) << text;
    EXPECT_EQ(g.entries(), 0u);
  }
}

TEST(graph_input, names_and_sizes_are_told) {
  const folder f;
  const std::string path = f.write("g.gz", gzipped("1 0\n"));
  const loaded got = load(path, {.threads = 1});
  EXPECT_EQ(got.what, path + " (edge list)");
  EXPECT_EQ(got.bytes, std::filesystem::file_size(path));
  EXPECT_GT(got.seconds, 0);
  EXPECT_EQ(load("grid:3x4", {.threads = 1}).what, "grid:3x4");
}

TEST(graph_input, undirected_takes_edges_both_ways_whatever_the_format) {
  const folder f;
  for_small_graphs(40, 10, 20, [&](const csr_graph& g) {
    write_binary(g, f.at("binary"));
    std::vector<test_edge> edges;
    for (vertex v = 0; v < g.vertices(); ++v)
      for (std::uint32_t e = g.row[v]; e < g.row[v + 1]; ++e)
        edges.push_back({v, g.column[e], weight_of(g, e)});
    const csr_graph both =
        make_graph(g.vertices(), edges, false, g.weighted() ? weights::any : weights::none);
    const input_options options{.edges = symmetry::undirected};
    const csr_graph got = load(f.at("binary"), options, in_small_chunks(64, 4)).g;
    expect_same(got, both);
    EXPECT_EQ(got.first, g.first);
    expect_same(read(f, as_matrix_market(g), options), both);
  });
}

TEST(graph_input, gzip_files_may_have_several_members_and_zeros_behind_them) {
  const folder f;
  const std::string two = gzipped("0 1\n1") + gzipped(" 2\n");
  const csr_graph expected = make_graph(3, {{0, 1}, {1, 2}}, true);
  expect_same(read(f, two), expected);
  expect_same(read(f, two + std::string(512, '\0')), expected);
  EXPECT_EQ(read(f, gzipped(std::string(300'000, '\n') + "0 1\n")).entries(), 1u);
}

TEST(graph_input, pipes_are_read) {
  const folder f;
  const std::string path = f.write("binary", "");
  write_binary(make_graph(3, {{0, 1}, {1, 2}}, true), path);
  for (const std::string& content : {f.content("binary"), std::string("0 1\n1 2\n")}) {
    f.write("in", content);
    const std::string pipe = f.at("pipe");
    ASSERT_EQ(std::system(("mkfifo " + pipe + "; cat " + f.at("in") + " > " + pipe + " &").c_str()),
              0);
    EXPECT_EQ(load(pipe, {.threads = 1}).g.entries(), 2u);
    std::filesystem::remove(pipe);
  }
}

}  // namespace
}  // namespace grosr::graphs
