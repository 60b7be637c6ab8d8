// As a dataflow graph whose nodes hand over whole arrays, and change them in place.
#include <fmt/format.h>

#include <optional>

#include "stream_node.hpp"
#include "ways.hpp"

namespace grosr::prk {
namespace {

flow::node add_node(flow::graph& g, const std::string& name, stream_function f,
                    const std::vector<flow::port>& ports) {
  switch (ports.size()) {
    case 1:
      return add_stream_node<0, 1, 0>(g, name, std::move(f), ports);
    case 2:
      return add_stream_node<0, 2, 0>(g, name, std::move(f), ports);
    default:
      return add_stream_node<0, 3, 0>(g, name, std::move(f), ports);
  }
}

class chain_flow final : public way {
 public:
  chain_flow(const device& d, const problem& p, unsigned unrolled)
      : executor_({.devices = {d}, .threads = 0}), graph_(executor_, {.name = p.name}) {
    std::vector<std::optional<flow::port_ref>> first(p.state.size()), last(p.state.size());
    for (unsigned i = 0; i < unrolled; ++i)
      for (const part& a : p.parts) {
        std::vector<flow::port> ports;
        for (const unsigned u : a.uses)
          ports.push_back({p.state[u].name, flow::block_template::of<double>(p.state[u].elements)});
        const flow::node n = add_node(
            graph_, fmt::format("{} {}", a.name, i),
            [put = a.launch](simt::stream& s, const at_ports& at) { put(s, at.inout); }, ports);
        for (const unsigned u : a.uses) {
          const flow::port_ref port = n[p.state[u].name];
          if (last[u])
            graph_.connect(*last[u], port);
          else
            first[u] = port;
          last[u] = port;
        }
      }
    for (std::size_t u = 0; u < p.state.size(); ++u)
      state_.emplace_back(graph_, p.state[u], first[u].value(), last[u].value());
    graph_.compile();
  }

  void run(unsigned rounds) override {
    for (unsigned r = 0; r < rounds; ++r) {
      for (circulating& a : state_) a.push();
      for (circulating& a : state_) a.pull();
    }
    graph_.wait();
  }
  arrays results() override {
    arrays all;
    for (const circulating& a : state_) all.push_back(a.elements());
    return all;
  }
  std::optional<flow_counts> counts() const override { return counts_of(executor_, graph_); }

 private:
  mutable flow::executor executor_;
  flow::graph graph_;
  std::vector<circulating> state_;
};

}  // namespace

std::unique_ptr<way> make_chain_flow(const device& d, const problem& p, unsigned unrolled) {
  return std::make_unique<chain_flow>(d, p, unrolled);
}

}  // namespace grosr::prk
