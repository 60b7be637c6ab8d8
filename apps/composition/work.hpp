// What is computed: operations on square matrices of float, each on the results of others, and
// their shapes as a whole: trees, ((A op B) op (C op D)), and columns beside each other, ((A op B)
// op C).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace grosr::composition {

enum class operation : std::uint8_t {
  gemm,   ///< the product, scaled so that its elements are about as large as those of the operands
  madd,   ///< half of the sum
  mcopy,  ///< the left one
};

/// Operand numbers: the inputs, then the operations' results.
struct step {
  unsigned left, right;
};

struct work {
  std::string name;
  operation what = operation::gemm;
  std::uint32_t side = 64;
  unsigned inputs = 0;
  std::vector<step> steps;        ///< each behind those that it needs
  std::vector<unsigned> outputs;  ///< operand numbers

  std::size_t elements() const { return std::size_t{side} * side; }
  std::size_t bytes() const { return elements() * sizeof(float); }
};

/// `depth` levels, of which the lowest has 2^(depth - 1) operations.
work tree(operation what, std::uint32_t side, unsigned depth);
/// `width` columns of `depth` operations each.
work columns(operation what, std::uint32_t side, unsigned width, unsigned depth);

const char* name_of(operation what);

/// What an element of a product is multiplied by.
float product_scale(std::uint32_t side);

/// An element of an input, in a round.
float input_element(unsigned input, std::size_t element, unsigned round);

/// The outputs of a round, by plain loops.
std::vector<std::vector<float>> compute_plainly(const work& w, unsigned round);

/// The first output that differs by more than rounding; empty: none.
std::string first_wrong(const work& w, const std::vector<std::vector<float>>& got,
                        const std::vector<std::vector<float>>& expected);

}  // namespace grosr::composition
