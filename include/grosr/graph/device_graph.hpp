// A graph in device memory.
#pragma once

#include "grosr/graph/csr_graph.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::graphs {

/// Owns the copy that a graph_ref shows. Movable.
class device_graph {
 public:
  /// Throws error(out_of_memory, device_lost).
  device_graph(const device& d, const csr_graph& g)
      : where_(d),
        row_(d, simt::space::device, g.row.size()),
        column_(d, simt::space::device, (g.column.size() + 7) / 8 * 8),  // for quad_of()
        weight_(d, simt::space::device, g.weight.size()),
        vertices_(g.vertices()),
        entries_(g.entries()),
        directed_(g.directed) {
    double sum = 0;
    for (const float w : g.weight) sum += w;
    mean_weight_ = g.weight.empty() ? 1 : sum / static_cast<double>(g.weight.size());
    row_.copy_from(g.row);
    column_.copy_from(g.column);
    weight_.copy_from(g.weight);
  }

  graph_ref ref() const {
    return {row_.data(), column_.data(), weight_.data(), vertices_, entries_};
  }
  const device& where() const { return where_; }
  vertex vertices() const { return vertices_; }
  bool directed() const { return directed_; }
  std::uint64_t entries() const { return entries_; }
  double mean_weight() const { return mean_weight_; }  ///< 1 for a graph without weights
  std::size_t bytes() const { return row_.bytes() + column_.bytes() + weight_.bytes(); }

 private:
  device where_;
  simt::buffer<std::uint32_t> row_;
  simt::buffer<vertex> column_;
  simt::buffer<float> weight_;
  vertex vertices_ = 0;
  std::uint32_t entries_ = 0;
  double mean_weight_ = 1;
  bool directed_ = true;
};

}  // namespace grosr::graphs
