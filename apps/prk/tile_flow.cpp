// The wavefront as a dataflow graph: a node has a tile, and gets the edges of its neighbours'.
#include <fmt/format.h>

#include <optional>

#include "device_arrays.hpp"
#include "kernels.hpp"
#include "stream_node.hpp"
#include "ways.hpp"

namespace grosr::prk {
namespace {

/// Nodes take the edges above and to the left, and make those below and to the right, where there
/// are neighbours. The corner goes from the last tile through the first one to the last one.
flow::node add_node(flow::graph& g, const std::string& name, stream_function f,
                    const std::vector<flow::port>& ports, std::size_t in, bool corner) {
  const std::size_t out = ports.size() - in - (corner ? 1 : 0);
  if (corner && in != 0) return add_stream_node<2, 1, 0>(g, name, std::move(f), ports);
  if (corner && out != 0) return add_stream_node<0, 1, 2>(g, name, std::move(f), ports);
  if (corner) return add_stream_node<0, 1, 0>(g, name, std::move(f), ports);
  if (in == 1 && out == 1) return add_stream_node<1, 0, 1>(g, name, std::move(f), ports);
  if (in == 1) return add_stream_node<1, 0, 2>(g, name, std::move(f), ports);
  if (out == 1) return add_stream_node<2, 0, 1>(g, name, std::move(f), ports);
  return add_stream_node<2, 0, 2>(g, name, std::move(f), ports);
}

class tile_flow final : public way {
 public:
  tile_flow(const device& d, const problem& p, unsigned unrolled)
      : grid_(p.tiles.value()),
        executor_({.devices = {d}, .threads = 0}),
        matrix_(d, {p.state[0]}),
        graph_(executor_, {.name = p.name}) {
    std::optional<flow::port_ref> first, last;
    for (unsigned i = 0; i < unrolled; ++i) {
      const auto [begin, end] = add_iteration(i);
      if (last)
        graph_.connect(*last, begin);
      else
        first = begin;
      last = end;
    }
    corner_.emplace(graph_, p.state[1], first.value(), last.value());
    graph_.compile();
  }

  void run(unsigned rounds) override {
    for (unsigned r = 0; r < rounds; ++r) {
      corner_->push();
      corner_->pull();
    }
    graph_.wait();
  }
  arrays results() override {
    arrays all = matrix_.read();
    all.push_back(corner_->elements());
    return all;
  }
  std::optional<flow_counts> counts() const override { return counts_of(executor_, graph_); }

 private:
  /// Returns where the corner comes in, and where it comes out.
  std::pair<flow::port_ref, flow::port_ref> add_iteration(unsigned number) {
    const std::uint32_t count = grid_.count();
    std::vector<flow::node> nodes;
    for (std::uint32_t row = 0; row < count; ++row)
      for (std::uint32_t column = 0; column < count; ++column) {
        nodes.push_back(add_tile(number, row, column));
        if (row != 0)
          graph_.connect(nodes[(row - 1) * count + column]["below"], nodes.back()["above"]);
        if (column != 0) graph_.connect(nodes[nodes.size() - 2]["right"], nodes.back()["left"]);
      }
    if (nodes.size() != 1) graph_.connect(nodes.front()["corner"], nodes.back()["corner"]);
    return {nodes.front()["corner"], nodes.back()["corner"]};
  }

  flow::node add_tile(unsigned number, std::uint32_t row, std::uint32_t column) {
    const bool is_first = row + column == 0, is_last = grid_.is_last(row, column);
    const bool has_above = row != 0, has_left = column != 0;
    const bool has_below = row + 1 != grid_.count(), has_right = column + 1 != grid_.count();
    const sweep_tile tile = tile_of(grid_, matrix_.at(0), row, column);
    const auto put = [=](simt::stream& s, const at_ports& at) {
      sweep_tile t = tile;
      if (has_above) t.above = at.in.front();
      if (has_left) {
        t.left = at.in.back();
        t.left_pitch = 1;
      }
      if (is_first) t.corner = at.inout.front();
      if (is_last) t.next_corner = at.inout.front();
      if (has_below) t.below = at.out.front();
      if (has_right) t.right = at.out.back();
      launch_sweep(s, t);
    };
    const auto across = flow::block_template::of<double>(tile.columns + 1);
    const auto down = flow::block_template::of<double>(tile.rows);
    std::vector<flow::port> ports;
    if (has_above) ports.push_back({"above", across});
    if (has_left) ports.push_back({"left", down});
    const std::size_t in = ports.size();
    const bool corner = is_first || is_last;
    if (corner) ports.push_back({"corner", flow::block_template::of<double>(1)});
    if (has_below) ports.push_back({"below", across});
    if (has_right) ports.push_back({"right", down});
    return add_node(graph_, fmt::format("tile {} {} of {}", row, column, number), put, ports, in,
                    corner);
  }

  const tile_grid grid_;
  mutable flow::executor executor_;
  device_arrays matrix_;
  flow::graph graph_;
  std::optional<circulating> corner_;
};

}  // namespace

std::unique_ptr<way> make_tile_flow(const device& d, const problem& p, unsigned unrolled) {
  return std::make_unique<tile_flow>(d, p, unrolled);
}

}  // namespace grosr::prk
