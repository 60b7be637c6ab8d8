// Columns of nodes on two devices: where they run by policy, at a time that is held.
#include <cstdlib>

#include "flow/functions.hpp"
#include "grosr/flow/graph.hpp"

namespace grosr::flow {
namespace {

using namespace tested;

constexpr unsigned depth = 6, breadth = 10, blocks = 4;

/// Copies of what nodes gave each other, and of constants from the host.
struct copied {
  std::uint64_t between_nodes = 0, constants = 0;
};

/// Each node adds a constant to what the one above it made. All constants are one block.
copied run_columns(const std::string& policy) {
  executor_options o;
  o.devices = {device("host:0"), device("host:1")};
  o.threads = 0;
  o.depth = 4;
  o.policy = policy;
  o.clock = [] { return 0; };
  executor e(o);
  graph g(e, {.stretches = false});
  const block_template array = block_template::of<word>(8);
  std::vector<source<word>> in, constants;
  std::vector<sink<word>> out;
  for (unsigned c = 0; c < breadth; ++c) {
    std::vector<node> column;
    for (unsigned r = 0; r < depth; ++r) {
      column.push_back(
          g.kernel(std::to_string(c) + "." + std::to_string(r), sum_of_two{},
                   {{"a", array}, {.name = "b", .shape = array, .sticky = true}, {"c", array}}));
      constants.push_back(g.source<word>(column[r]["b"]));
      if (r != 0) g.connect(column[r - 1]["c"], column[r]["a"]);
    }
    in.push_back(g.source<word>(column.front()["a"], {.capacity = blocks}));
    out.push_back(g.sink<word>(column.back()["c"], {.capacity = blocks, .prefetch = false}));
  }
  g.compile();
  const datablock constant = constants[0].make();
  for (word& x : constant.write<word>()) x = 7;
  for (const auto& c : constants) c.push(constant);
  for (unsigned i = 0; i < blocks; ++i)
    for (unsigned c = 0; c < breadth; ++c) in[c].push(numbers(100 * c + i, 8));
  for (unsigned i = 0; i < blocks; ++i)
    for (unsigned c = 0; c < breadth; ++c)
      EXPECT_EQ(out[c].pull_elements(), numbers(100 * c + i + 7 * depth, 8));
  g.wait();
  copied all;
  for (const block_channel_stats& c : g.channels()) {
    if (c.from != "source" && c.to != "sink") all.between_nodes += c.copies.copies;
    if (c.from == "source" && c.to.ends_with(".b")) all.constants += c.copies.copies;
  }
  return all;
}

class two_devices : public ::testing::Test {
 protected:
  void SetUp() override { setenv("GROSR_HOST_DEVICES", "2", 1); }
  void TearDown() override { unsetenv("GROSR_HOST_DEVICES"); }
};

TEST_F(two_devices, data_aware_uses_both_and_moves_nothing_between_them) {
  const copied c = run_columns("data_aware");
  EXPECT_EQ(c.between_nodes, 0u);
  EXPECT_EQ(c.constants, 2u);  // to each once: a block that the host has, too, attracts nobody
}

TEST_F(two_devices, other_policies_move_blocks) {
  EXPECT_GT(run_columns("fifo").between_nodes, depth * breadth * blocks / 10);
}

}  // namespace
}  // namespace grosr::flow
