#include "stream_node.hpp"

namespace grosr::prk {

flow_counts counts_of(flow::executor& e, const flow::graph& g) {
  flow_counts c;
  c.copied_bytes = e.memory().counts().bytes;
  for (const flow::node_stats& n : g.nodes())
    if (n.stretch.empty()) ++c.started_nodes;
  c.events = g.events();
  return c;
}

}  // namespace grosr::prk
