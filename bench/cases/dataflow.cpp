// `grosr bench dataflow`: what a node of a dataflow graph costs, on the host and as a kernel.
#include "cases/benches.hpp"
#include "cli/interrupt.hpp"
#include "limits/limits.hpp"
#include "measure/machine.hpp"
#include "work/dataflow_chains.hpp"

namespace grosr::tool {
namespace {

constexpr unsigned in_flight = 32;

/// Many blocks at once go through a chain of functions of the host.
void host_nodes(session& s, unsigned nodes, unsigned blocks) {
  dataflow_chain chain(s.where, chain_nodes::host, nodes, 1);
  const samples us = s.repeat("dataflow: host nodes", {1, s.sized(11u, 5u), 5.0},
                              [&] { return timed([&] { chain.stream(blocks, in_flight); }); });
  row r(std::to_string(nodes) + (nodes == 1 ? " host node, " : " host nodes, ") +
        std::to_string(in_flight) + " blocks under way");
  r.set("node_us", us.median() / blocks / nodes)
      .time(us)
      .check(chain.wrong().empty(), chain.wrong());
  r.at_most("node_us", 0.5);
  s.out.add(r);
}

/// Memory while very many blocks go through.
void memory_over(session& s, unsigned blocks) {
  dataflow_chain chain(s.where, chain_nodes::host, 1, 0);
  chain.stream(1000, in_flight);
  const auto before = static_cast<double>(resident_bytes());
  const auto held = static_cast<double>(chain.held_bytes());
  const double us = timed([&] {
    for (unsigned done = 0; done < blocks; done += 1000) {
      chain.stream(1000, in_flight);
      interrupt::check();
    }
  });
  row r(std::to_string(blocks) + " blocks through one host node, by one thread");
  r.set("node_us", us / blocks)
      .set("planned_bytes", static_cast<double>(chain.planned_bytes()))
      .set("held_bytes", static_cast<double>(chain.held_bytes()))
      .set("host_growth_bytes", static_cast<double>(resident_bytes()) - before)
      .check(chain.wrong().empty(), chain.wrong())
      .check(static_cast<double>(chain.held_bytes()) == held, "memory for blocks has grown");
  r.at_most("held_bytes", static_cast<double>(chain.planned_bytes()), "the plan");
  r.at_most("host_growth_bytes", 1 << 20, "flat");
  s.out.add(r);
}

/// One block, from push() to pull().
void one_block(session& s) {
  dataflow_chain chain(s.where, chain_nodes::host, 1, 1);
  const samples us = s.repeat("dataflow: a block there and back", {20, s.sized(2000u, 200u), 3.0},
                              [&] { return timed([&] { chain.one(); }); });
  s.out.add(row("one block through one host node")
                .latency(us)
                .check(chain.wrong().empty(), chain.wrong()));
}

/// A chain of kernels, beside launches by hand and a graph of CUDA.
void kernel_nodes(session& s, unsigned nodes) {
  dataflow_chain chain(s.where, chain_nodes::kernel, nodes, 1);
  bool right = true;
  std::vector<double> by_hand;
  // Both sides take turns.
  const samples us = s.repeat("dataflow: kernel nodes", {2, s.sized(21u, 3u), 5.0}, [&] {
    by_hand.push_back(launch_increments(s.where, nodes));
    right = right && by_hand.back() >= 0;
    return timed([&] { chain.one(); });
  });
  const samples hand(std::move(by_hand));
  row r("a chain of " + std::to_string(nodes) + " kernels, one block");
  r.set("node_us", us.median() / nodes)
      .time(us)
      .check(chain.wrong().empty(), chain.wrong())
      .check(right, "the kernels launched by hand computed something else")
      .baseline("the same kernels launched on a stream, and two copies", "node_us",
                hand.median() / nodes);
  if (s.gpu()) {
    r.at_most("node_us", 1.05 * hand.median() / nodes, "1.05 of launches by hand");
    if (const auto f = limits::graph_node(s.where, nodes))
      r.limit("a node of a CUDA graph", "node_us", f->number);
  }
  s.out.add(r);
}

/// One block through nodes that stay on the device, beside the same as kernels. These come first:
/// memory is freed when residents have left.
void resident_nodes(session& s, unsigned nodes) {
  const plan p{20, s.sized(20'000u, 100u), 3.0};
  dataflow_chain kernels(s.where, chain_nodes::kernel, nodes, 0);
  std::vector<double> by_hand;
  const samples launched = s.repeat("dataflow: the same nodes as kernels", p, [&] {
    by_hand.push_back(launch_increments(s.where, nodes));
    return timed([&] { kernels.one(); });
  });
  dataflow_chain resident(s.where, chain_nodes::resident, nodes, 0);
  const samples us =
      s.repeat("dataflow: resident nodes", p, [&] { return timed([&] { resident.one(); }); });
  row r("one block through " + std::to_string(nodes) + " resident nodes");
  r.latency(us)
      .set("p999_us", us.quantile(0.999))
      .check(resident.wrong().empty(), resident.wrong())
      .check(kernels.wrong().empty(), kernels.wrong())
      .baseline("the same nodes as kernels, which run as one", "p50_us", launched.median())
      .baseline("the same kernels launched on a stream, and two copies", "p50_us",
                samples(by_hand).median());
  if (s.gpu()) {
    r.at_most("mean_us", 6);
    r.at_most("stddev_us", 0.3);
    r.at_most("p999_us", us.median() + 2, "2 us more than most");
  }
  s.out.add(r);
}

}  // namespace

void bench_dataflow(session& s) {
  const auto nodes = static_cast<unsigned>(s.number(0).value_or(s.sized(1000u, 50u)));
  host_nodes(s, 1, s.sized(20'000u, 2'000u));
  host_nodes(s, 100, s.sized(1'000u, 50u));
  memory_over(s, s.sized(10'000'000u, 20'000u));
  one_block(s);
  resident_nodes(s, 5);
  kernel_nodes(s, nodes);
}

}  // namespace grosr::tool
