#include "work.hpp"

#include <fmt/format.h>

#include <cmath>

namespace grosr::composition {
namespace {

/// Of the largest element: sums in another order. Other operations have one right result.
float allowed_difference(operation what) {
  switch (what) {
    case operation::gemm:
    case operation::pca_centre:
    case operation::pca_column:
    case operation::pca_loading:
    case operation::pca_normalise:
    case operation::pca_score:
    case operation::pca_deflate:
    case operation::group_sum:
      return 1e-3f;
    default:
      return 0;
  }
}

}  // namespace

const char* name_of(operation what) {
  static constexpr const char* names[] = {
      "gemm",          "madd",          "mcopy",       "bitonic_local", "bitonic_pass",
      "fdtd_magnetic", "fdtd_electric", "pca_centre",  "pca_column",    "pca_loading",
      "pca_normalise", "pca_score",     "pca_deflate", "group_key",     "group_count",
      "group_size",    "group_start",   "group_place", "group_scatter", "group_sum"};
  static_assert(std::size(names) == static_cast<std::size_t>(operation::group_sum) + 1);
  return names[static_cast<std::size_t>(what)];
}

unsigned work::add_input(std::size_t elements) {
  operands.push_back({elements, 0});
  return inputs++;
}

unsigned work::add_step(operation what, const std::array<std::uint32_t, 3>& parameters,
                        std::vector<unsigned> reads, const std::vector<std::size_t>& elements) {
  const auto first = static_cast<unsigned>(operands.size());
  step s{what, parameters, std::move(reads), {}};
  for (const std::size_t n : elements) {
    s.results.push_back(static_cast<unsigned>(operands.size()));
    operands.push_back({n, static_cast<unsigned>(steps.size())});
  }
  steps.push_back(std::move(s));
  return first;
}

std::size_t work::outside_bytes() const {
  std::size_t bytes = 0;
  for (unsigned i = 0; i < inputs; ++i) bytes += operands[i].bytes();
  for (const unsigned o : outputs) bytes += operands[o].bytes();
  return bytes;
}

float input_element(unsigned input, std::size_t element, unsigned round) {
  // The first element alone is of the round: what a round brings is new, and made in no time.
  std::uint64_t x =
      (std::uint64_t{input} << 40) + element + (element == 0 ? std::uint64_t{round} << 20 : 0);
  // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): elements in sequence have nothing in common.
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<float>(x >> 40) / static_cast<float>(1 << 24) - 0.5f;
}

arrays compute_plainly(const work& w, unsigned round) {
  arrays inputs(w.inputs);
  for (unsigned i = 0; i < w.inputs; ++i)
    for (std::size_t e = 0; e < w.operands[i].elements; ++e)
      inputs[i].push_back(input_element(i, e, round));
  return w.plainly(std::move(inputs));
}

std::string first_wrong(const work& w, const arrays& got, const arrays& expected) {
  if (got.size() != expected.size())
    return fmt::format("{} outputs came, not {}", got.size(), expected.size());
  for (std::size_t o = 0; o < got.size(); ++o) {
    if (got[o].size() != expected[o].size())
      return fmt::format("output {} has {} elements, not {}", o, got[o].size(), expected[o].size());
    float largest = 0;
    for (const float x : expected[o]) largest = std::max(largest, std::abs(x));
    if (!(largest > 1e-6f)) return fmt::format("output {} has nothing in it to compare", o);
    const float allowed =
        largest * allowed_difference(w.steps[w.operands[w.outputs[o]].made_by].what);
    for (std::size_t e = 0; e < expected[o].size(); ++e)
      if (!(std::abs(got[o][e] - expected[o][e]) <= allowed))
        return fmt::format("output {} has {} at {}, not {}", o, got[o][e], e, expected[o][e]);
  }
  return "";
}

}  // namespace grosr::composition
