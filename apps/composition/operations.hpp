// The operations on a device: the same kernels for all ways.
#pragma once

#include "grosr/simt/launch.hpp"
#include "work.hpp"

namespace grosr::composition {

/// Where a step's operands lie, in memory of the stream's device.
struct places {
  std::array<const float*, step::most_reads> reads{};
  std::array<float*, step::most_results> results{};

  /// `at` says where an operand lies.
  template <class F>
  static places of(const step& s, const F& at) {
    places p;
    for (std::size_t i = 0; i < s.reads.size(); ++i) p.reads[i] = at(s.reads[i]);
    for (std::size_t i = 0; i < s.results.size(); ++i) p.results[i] = at(s.results[i]);
    return p;
  }
};

/// Queues one step.
void launch_step(simt::stream& s, const step& what, const places& at);

// The same for the operations of a kind.
void launch_matrix_step(simt::stream& s, const step& what, const places& at);
void launch_bitonic_step(simt::stream& s, const step& what, const places& at);
void launch_fdtd_step(simt::stream& s, const step& what, const places& at);
void launch_pca_step(simt::stream& s, const step& what, const places& at);
void launch_group_step(simt::stream& s, const step& what, const places& at);

}  // namespace grosr::composition
