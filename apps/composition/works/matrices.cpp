#include <fmt/format.h>

#include <cmath>

#include "works.hpp"

namespace grosr::composition {
namespace {

std::vector<float> compute(const step& s, const std::vector<float>& a,
                           const std::vector<float>& b) {
  const std::size_t n = s.parameters[0];
  std::vector<float> c(n * n);
  for (std::size_t e = 0; e < c.size(); ++e) {
    if (s.what == operation::madd) c[e] = (a[e] + b[e]) / 2;
    if (s.what == operation::mcopy) c[e] = a[e];
  }
  if (s.what == operation::gemm)
    for (std::size_t y = 0; y < n; ++y)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t x = 0; x < n; ++x)
          c[y * n + x] += a[y * n + k] * b[k * n + x] * product_scale(s.parameters[0]);
  return c;
}

work with_inputs(std::string name, std::uint32_t side, unsigned inputs) {
  work w;
  w.name = fmt::format("{}, side {}", name, side);
  for (unsigned i = 0; i < inputs; ++i) w.add_input(std::size_t{side} * side);
  return w;
}

unsigned add(work& w, operation what, std::uint32_t side, unsigned left, unsigned right) {
  return w.add_step(what, {side}, {left, right}, {std::size_t{side} * side});
}

void finish(work& w, operation what, std::uint32_t side) {
  if (what == operation::gemm && side > 128) return;
  w.plainly = [steps = w.steps, outputs = w.outputs](arrays all) {
    for (const step& s : steps) all.push_back(compute(s, all[s.reads[0]], all[s.reads[1]]));
    arrays results;
    for (const unsigned o : outputs) results.push_back(all[o]);
    return results;
  };
}

}  // namespace

work tree(operation what, std::uint32_t side, unsigned depth) {
  const unsigned leaves = 1u << (depth - 1);
  work w =
      with_inputs(fmt::format("{}, tree of {} levels", name_of(what), depth), side, 2 * leaves);
  unsigned first = 0;  // of the level below
  for (unsigned count = leaves; count != 0; count /= 2) {
    for (unsigned i = 0; i < count; ++i) add(w, what, side, first + 2 * i, first + 2 * i + 1);
    first += 2 * count;
  }
  w.outputs = {first};
  finish(w, what, side);
  return w;
}

work columns(operation what, std::uint32_t side, unsigned width, unsigned depth) {
  work w = with_inputs(fmt::format("{}, {} columns of {}", name_of(what), width, depth), side,
                       width * (depth + 1));
  std::vector<unsigned> above;
  for (unsigned column = 0; column < width; ++column) above.push_back(column);
  for (unsigned row = 0; row < depth; ++row)
    for (unsigned column = 0; column < width; ++column)
      above[column] = add(w, what, side, above[column], (row + 1) * width + column);
  w.outputs = above;
  finish(w, what, side);
  return w;
}

float product_scale(std::uint32_t side) {
  // Elements of inputs are from -0.5 to 0.5: their variance is 1/12, and so it stays.
  return std::sqrt(12.0f / static_cast<float>(side));
}

}  // namespace grosr::composition
