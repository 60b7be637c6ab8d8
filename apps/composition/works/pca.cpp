#include <fmt/format.h>

#include <cmath>

#include "works.hpp"

namespace grosr::composition {
namespace {

constexpr unsigned components = 3;

arrays compute(const std::vector<float>& input, std::size_t n, unsigned iterations) {
  std::vector<double> x(input.begin(), input.end()), scores(n), loadings(n);
  for (std::size_t j = 0; j < n; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += x[i * n + j];
    for (std::size_t i = 0; i < n; ++i)
      x[i * n + j] = (x[i * n + j] - sum / static_cast<double>(n)) / static_cast<double>(j + 1);
  }
  arrays outputs;
  for (unsigned c = 0; c < components; ++c) {
    for (std::size_t i = 0; i < n; ++i) scores[i] = x[i * n + c];
    for (unsigned k = 0; k < iterations; ++k) {
      loadings.assign(n, 0);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) loadings[j] += x[i * n + j] * scores[i];
      double squares = 0;
      for (const double p : loadings) squares += p * p;
      for (double& p : loadings) p /= std::sqrt(squares);
      scores.assign(n, 0);
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j) scores[i] += x[i * n + j] * loadings[j];
    }
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) x[i * n + j] -= scores[i] * loadings[j];
    outputs.emplace_back(scores.begin(), scores.end());
    outputs.emplace_back(loadings.begin(), loadings.end());
  }
  return outputs;
}

}  // namespace

work pca(std::uint32_t side, unsigned iterations) {
  work w;
  w.name = fmt::format("pca, {} iterations, side {}", iterations, side);
  const std::size_t all = std::size_t{side} * side;
  unsigned x = w.add_step(operation::pca_centre, {side}, {w.add_input(all)}, {all});
  for (unsigned c = 0; c < components; ++c) {
    unsigned loadings = 0, scores = w.add_step(operation::pca_column, {side, c}, {x}, {side});
    for (unsigned k = 0; k < iterations; ++k) {
      const unsigned sums = w.add_step(operation::pca_loading, {side}, {x, scores}, {side});
      loadings = w.add_step(operation::pca_normalise, {side}, {sums}, {side});
      scores = w.add_step(operation::pca_score, {side}, {x, loadings}, {side});
    }
    w.outputs.insert(w.outputs.end(), {scores, loadings});
    if (c + 1 != components)
      x = w.add_step(operation::pca_deflate, {side}, {x, scores, loadings}, {all});
  }
  w.plainly = [side, iterations](const arrays& inputs) {
    return compute(inputs[0], side, iterations);
  };
  return w;
}

}  // namespace grosr::composition
