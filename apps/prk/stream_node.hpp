// Nodes of a dataflow graph that put a kernel into a stream, with as many ports as they are told.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "grosr/flow/graph.hpp"
#include "ways.hpp"

namespace grosr::prk {

/// Where the blocks lie that a node reads, changes, and writes, each in the order of its ports.
struct at_ports {
  std::vector<const double*> in;
  std::vector<double*> inout, out;
};
using stream_function = std::function<void(simt::stream&, const at_ports&)>;

namespace detail {
template <class In, class InOut, class Out>
struct put;
template <std::size_t... In, std::size_t... InOut, std::size_t... Out>
struct put<std::index_sequence<In...>, std::index_sequence<InOut...>, std::index_sequence<Out...>> {
  template <class View, std::size_t>
  using one_of = View;

  stream_function function;
  void operator()(simt::stream& s, one_of<flow::in<double>, In>... in,
                  one_of<flow::inout<double>, InOut>... inout,
                  one_of<flow::out<double>, Out>... out) const {
    function(s, {{in.data...}, {inout.data...}, {out.data...}});
  }
};
}  // namespace detail

/// A node with so many ports that are read, changed, and written, in this order. It always puts the
/// same kernel into the stream.
template <std::size_t In, std::size_t InOut, std::size_t Out>
flow::node add_stream_node(flow::graph& g, const std::string& name, stream_function f,
                           const std::vector<flow::port>& ports) {
  using function = detail::put<std::make_index_sequence<In>, std::make_index_sequence<InOut>,
                               std::make_index_sequence<Out>>;
  return g.on_stream(name, function{std::move(f)}, ports, flow::stream_work::same_always);
}

flow_counts counts_of(flow::executor& e, const flow::graph& g);

/// The program's end of an array: a block that goes through the graph, and comes back changed.
struct circulating {
  flow::source<double> from;
  flow::sink<double> to;
  flow::datablock block;

  circulating(flow::graph& g, const array_description& a, flow::port_ref first, flow::port_ref last)
      : from(g.source<double>(first)), to(g.sink<double>(last, {.prefetch = false})) {
    block = from.make();
    const auto elements = block.write<double>();
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = a.initial(i);
  }
  // Without a handle of the program's the graph changes the block in place.
  void push() { from.push(std::move(block)); }
  void pull() { block = to.pull(); }
  std::vector<double> elements() const {
    const auto all = block.read<double>();
    return {all.begin(), all.end()};
  }
};

}  // namespace grosr::prk
