// Multiplication of square matrices of floats on a device, by fork and join: Strassen's, or plain.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "grosr/run/options.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/device.hpp"

namespace grosr::recursion {

class strassen {
 public:
  using matrix = simt::buffer<float>;  ///< row after row

  /// Throws grosr::error as runtime does.
  explicit strassen(const device& d, const runtime_options& options = {});
  ~strassen();

  /// Whether matrices of n x n can be multiplied: n is 64 times a power of two, up to 32768.
  static bool fits(std::uint64_t n);
  /// How many floats run() needs besides: (17/4) n^2 at the first level, 7/4 of that at each next
  /// one, for products whose side is above `leaf`. 0 where leaf is at least n.
  static std::uint64_t arena_size(std::uint64_t n, std::uint64_t leaf);

  /// c = a b, of n x n. Products of a side up to `leaf` (at least 64) are computed tile by tile;
  /// all are with a leaf of n. Returns when c is there. Throws error(invalid_option or
  /// task_failed).
  void run(const matrix& a, const matrix& b, const matrix& c, const matrix& arena, std::uint32_t n,
           std::uint32_t leaf);

  runtime_stats stats() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The product on the CPU, in the plain way.
std::vector<float> multiply_on_host(const std::vector<float>& a, const std::vector<float>& b,
                                    std::uint32_t n);

/// Whether c = a b, by Freivalds: c x = a (b x) for vectors x of whole numbers. The matrices hold
/// whole numbers, so small that this is exact. True for a wrong c once in some 10^9 at most.
bool is_product(const std::vector<float>& a, const std::vector<float>& b,
                const std::vector<float>& c, std::uint32_t n);

}  // namespace grosr::recursion
