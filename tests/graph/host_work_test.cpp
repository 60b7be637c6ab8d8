// Work of the host tells its watcher how far it is, and ends when that throws.
#include <algorithm>
#include <set>
#include <thread>

#include "grosr/graph/io/build.hpp"
#include "grosr/graph/statistics.hpp"
#include "input_files.hpp"

namespace grosr::graphs {
namespace {

struct enough {};  // no std::exception

/// Calls work(watcher) with one that throws at call `last`, and notes what it was told.
struct watched {
  std::set<std::string> stages;
  std::uint64_t calls = 0;
  bool ended = false, others = false;

  template <class Work>
  watched(std::uint64_t last, const Work& work) {
    const auto asker = std::this_thread::get_id();
    try {
      work([&, asker](const work_progress& now) {
        others = others || std::this_thread::get_id() != asker;
        stages.emplace(now.stage);
        if (++calls == last) throw enough{};
      });
    } catch (const enough&) {
      ended = true;
    }
  }
};

TEST(watched_work, ends_wherever_the_watcher_throws) {
  const folder f;
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += std::to_string(i * 7 % 5000) + " " + std::to_string(i) + "\n";
  const std::string list = f.write("list", text), packed = f.write("packed", gzipped(text));
  const csr_graph g = load(list).g;
  write_binary(g, f.at("binary"));
  for (const unsigned threads : {1u, 4u})
    for (const std::string& name :
         {list, packed, f.at("binary"), std::string("kronecker:10"), std::string("grid:99x99")}) {
      const auto work = [&](const work_watcher& watch) {
        input_options how{.edges = symmetry::undirected, .random_weights = 1, .watch = watch};
        load(name, how, in_small_chunks(1 << 12, threads));
      };
      const watched all(0, work);
      EXPECT_FALSE(all.ended || all.others) << name;
      EXPECT_GE(all.calls, 2u) << name;
      EXPECT_TRUE(all.stages.count("loading " + name)) << name;
      // How often several threads give the asker a turn is chance.
      for (const std::uint64_t last :
           {std::uint64_t{1}, std::uint64_t{2}, threads == 1 ? all.calls - 1 : 1}) {
        const watched part(last, work);
        EXPECT_TRUE(part.ended) << name << " " << last;
        EXPECT_EQ(part.calls, last) << name;
      }
    }
}

TEST(watched_work, on_a_graph_ends_as_well) {
  const folder f;
  const csr_graph g = load("grid:200x200").g;
  const std::string path = f.write("there", "old");
  const watched facts(1, [&](const auto& watch) { statistics_of(g, {2, watch}); });
  EXPECT_TRUE(facts.ended);
  const watched writing(2, [&](const auto& watch) { write_binary(g, path, {2, watch}); });
  EXPECT_TRUE(writing.ended);
  EXPECT_EQ(writing.stages, std::set<std::string>{"writing " + path});
  EXPECT_EQ(f.content("there"), "old");
  const watched building(1, [&](const auto& watch) {
    edge_list edges;
    for (vertex v = 0; v < 1000; ++v) edges.add({v, v / 2});
    left_out dropped;
    build(std::move(edges), 1000, false, dropped, {2, watch});
  });
  EXPECT_TRUE(building.ended);
}

TEST(watched_work, says_what_failed) {
  const folder f;
  const auto code = [](const auto& work) {
    try {
      work();
    } catch (const error& e) {
      return e.code();
    }
    return std::error_code();
  };
  EXPECT_EQ(code([&] { load(f.at("none")); }), errc::bad_input);
  EXPECT_EQ(code([&] { load("grid:3"); }), errc::bad_input);
  EXPECT_EQ(code([&] { write_binary(csr_graph{}, f.at("none/g")); }), errc::write_failed);
}

}  // namespace
}  // namespace grosr::graphs
