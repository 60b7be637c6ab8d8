#include "recursion/strassen.hpp"

namespace grosr::recursion {

std::vector<float> multiply_on_host(const std::vector<float>& a, const std::vector<float>& b,
                                    std::uint32_t n) {
  constexpr std::uint32_t block = 64;
  std::vector<float> c(std::size_t{n} * n);
  for (std::uint32_t k0 = 0; k0 < n; k0 += block)
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::uint32_t k = k0; k < n && k < k0 + block; ++k) {
        const float x = a[std::size_t{i} * n + k];
        const float* from = &b[std::size_t{k} * n];
        float* to = &c[std::size_t{i} * n];
        for (std::uint32_t j = 0; j < n; ++j) to[j] += x * from[j];
      }
  return c;
}

bool is_product(const std::vector<float>& a, const std::vector<float>& b,
                const std::vector<float>& c, std::uint32_t n) {
  const auto times = [n](const std::vector<float>& m, const std::vector<double>& x) {
    std::vector<double> y(n);
    for (std::uint32_t i = 0; i < n; ++i)
      for (std::uint32_t j = 0; j < n; ++j) y[i] += m[std::size_t{i} * n + j] * x[j];
    return y;
  };
  std::uint64_t seed = 1;
  for (int round = 0; round < 3; ++round) {
    std::vector<double> x(n);
    for (double& v : x) {
      seed = seed * 6364136223846793005ull + 1442695040888963407ull;
      v = static_cast<double>(seed >> 54);
    }
    if (times(c, x) != times(a, times(b, x))) return false;
  }
  return true;
}

}  // namespace grosr::recursion
