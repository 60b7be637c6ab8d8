// What a launch costs.
#include "cli/interrupt.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"
#include "limits/kernels.hpp"
#include "limits/limits.hpp"

namespace grosr::tool::limits {
namespace {

struct empty {
  GROSR_DEVICE void operator()() const {}
};

}  // namespace

times launch_and_wait(const device& d, unsigned n) {
  simt::stream s(d);
  const auto once = [&] {
    simt::launch(s, {1, 32}, empty{});
    s.wait();
  };
  for (unsigned i = 0; i < 10; ++i) once();
  std::vector<double> all;
  for (unsigned i = 0; i < n; ++i) {
    interrupt::check();
    all.push_back(timed(once));
  }
  return {samples(std::move(all)), ""};
}

figure launch_only(const device& d, unsigned n) {
  simt::stream s(d);
  simt::run(d, {1, 32}, empty{});
  const double us = timed([&] {
    for (unsigned i = 0; i < n && !interrupt::requested(); ++i) simt::launch(s, {1, 32}, empty{});
    s.wait();
  });
  interrupt::check();
  return {us / n, ""};
}

std::optional<figure> graph_node(const device& d, unsigned nodes) {
  simt::buffer<std::uint32_t> results(d, simt::space::device, nodes);
  auto graph = store_graph(d, results.data(), nodes);
  if (!graph) return std::nullopt;
  graph->replay();
  figure f{timed([&] { graph->replay(); }) / nodes, ""};
  std::vector<std::uint32_t> got(nodes);
  results.copy_to(got);
  for (unsigned i = 0; i < nodes; ++i)
    if (got[i] != 2 * i) f.wrong = "node " + std::to_string(i) + " wrote " + std::to_string(got[i]);
  return f;
}

}  // namespace grosr::tool::limits
