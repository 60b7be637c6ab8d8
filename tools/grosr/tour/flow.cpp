// Tour: blocks that go through a dataflow graph.
#include "tour/parts.hpp"
#include "work/dataflow_chains.hpp"

namespace grosr::tool {

void tour_flow(session& s, const std::string&) {
  const unsigned nodes = s.sized(100u, 10u), blocks = s.sized(1000u, 50u);
  dataflow_chain chain(s.where, chain_nodes::kernel, nodes, 1);
  bool right = true;
  std::vector<double> by_hand;
  const samples us = s.repeat("flow", {1, 5, 2.0}, [&] {
    by_hand.push_back(launch_increments(s.where, nodes));
    right = right && by_hand.back() >= 0;
    return timed([&] { chain.stream(blocks, 32); });
  });
  const samples hand(std::move(by_hand));
  const double count = static_cast<double>(blocks) * nodes;
  row line("flow");
  line.set("nodes", count)
      .set("nodes_per_s", count * 1e6 / us.median())
      .baseline("the same kernels launched by hand", "nodes_per_s", nodes * 1e6 / hand.median())
      .check(chain.wrong().empty(), chain.wrong())
      .check(right, "the kernels launched by hand computed something else");
  s.out.add(line);
}

}  // namespace grosr::tool
