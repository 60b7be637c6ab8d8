#include "work.hpp"

#include <fmt/format.h>

#include <cmath>

namespace grosr::composition {

work tree(operation what, std::uint32_t side, unsigned depth) {
  const unsigned leaves = 1u << (depth - 1);
  work w{
      fmt::format("{}, tree of {} levels", name_of(what), depth), what, side, 2 * leaves, {}, {}};
  unsigned first = 0;  // of the level below
  for (unsigned count = leaves; count != 0; count /= 2) {
    for (unsigned i = 0; i < count; ++i) w.steps.push_back({first + 2 * i, first + 2 * i + 1});
    first += 2 * count;
  }
  w.outputs = {w.inputs + static_cast<unsigned>(w.steps.size()) - 1};
  return w;
}

work columns(operation what, std::uint32_t side, unsigned width, unsigned depth) {
  work w{fmt::format("{}, {} columns of {}", name_of(what), width, depth),
         what,
         side,
         width * (depth + 1),
         {},
         {}};
  for (unsigned row = 0; row < depth; ++row)
    for (unsigned column = 0; column < width; ++column) {
      const unsigned above = row == 0 ? column : w.inputs + (row - 1) * width + column;
      w.steps.push_back({above, (row + 1) * width + column});
    }
  for (unsigned column = 0; column < width; ++column)
    w.outputs.push_back(w.inputs + (depth - 1) * width + column);
  return w;
}

const char* name_of(operation what) {
  return what == operation::gemm ? "gemm" : what == operation::madd ? "madd" : "mcopy";
}

float product_scale(std::uint32_t side) {
  // Elements of inputs are from -0.5 to 0.5: their variance is 1/12, and so it stays.
  return std::sqrt(12.0f / static_cast<float>(side));
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

std::vector<std::vector<float>> compute_plainly(const work& w, unsigned round) {
  std::vector<std::vector<float>> all(w.inputs);
  const std::size_t n = w.side;
  for (unsigned i = 0; i < w.inputs; ++i)
    for (std::size_t e = 0; e < w.elements(); ++e) all[i].push_back(input_element(i, e, round));
  for (const step& s : w.steps) {
    const std::vector<float>&a = all[s.left], &b = all[s.right];
    std::vector<float> c(w.elements());
    for (std::size_t e = 0; e < c.size(); ++e) {
      if (w.what == operation::madd) c[e] = (a[e] + b[e]) / 2;
      if (w.what == operation::mcopy) c[e] = a[e];
    }
    if (w.what == operation::gemm)
      for (std::size_t y = 0; y < n; ++y)
        for (std::size_t k = 0; k < n; ++k)
          for (std::size_t x = 0; x < n; ++x)
            c[y * n + x] += a[y * n + k] * b[k * n + x] * product_scale(w.side);
    all.push_back(std::move(c));
  }
  std::vector<std::vector<float>> outputs;
  for (const unsigned o : w.outputs) outputs.push_back(all[o]);
  return outputs;
}

std::string first_wrong(const work& w, const std::vector<std::vector<float>>& got,
                        const std::vector<std::vector<float>>& expected) {
  if (got.size() != expected.size())
    return fmt::format("{} outputs came, not {}", got.size(), expected.size());
  for (std::size_t o = 0; o < got.size(); ++o) {
    float largest = 0;
    for (const float x : expected[o]) largest = std::max(largest, std::abs(x));
    if (!(largest > 1e-6f)) return fmt::format("output {} has nothing in it to compare", o);
    // Sums in another order.
    const float allowed = w.what == operation::gemm ? largest * 1e-3f : 0;
    for (std::size_t e = 0; e < expected[o].size(); ++e)
      if (!(std::abs(got[o][e] - expected[o][e]) <= allowed))
        return fmt::format("output {} has {} at {}, not {}", o, got[o][e], e, expected[o][e]);
  }
  return "";
}

}  // namespace grosr::composition
