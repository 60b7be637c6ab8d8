// What is computed: steps, each an operation on inputs and on results of other steps.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace grosr::composition {

/// In braces: a step's parameters. Whole numbers below 2^24 are exact in operands of float.
enum class operation : std::uint8_t {
  gemm,   ///< {side} the product, scaled so that its elements are about as large as the operands'
  madd,   ///< {side} half of the sum
  mcopy,  ///< {side} the left one

  bitonic_local,  ///< {elements, first stage, last stage} all passes inside of blocks
  bitonic_pass,   ///< {elements, stage, distance} one pass across blocks

  fdtd_magnetic,  ///< {side} half a time step: Ez, Hx, Hy to Hx, Hy
  fdtd_electric,  ///< {side} the other half: Ez, Hx, Hy to Ez

  pca_centre,     ///< {side} columns less their means, column j divided by j + 1
  pca_column,     ///< {side, column} one column
  pca_loading,    ///< {side} the transposed matrix times a vector of scores
  pca_normalise,  ///< {side} a vector, divided by its length
  pca_score,      ///< {side} the matrix times a vector of loadings
  pca_deflate,    ///< {side} the matrix less the outer product of scores and loadings

  group_key,      ///< {records, groups} the key of each record
  group_count,    ///< {records, groups} how often each tile has each key, one row a key
  group_size,     ///< {groups, tiles} the sum of each row
  group_start,    ///< {groups} the sums of all sizes before each one
  group_place,    ///< {groups, tiles} the sums of all counts before each one
  group_scatter,  ///< {records, groups} records in the order of keys; equal keys keep their order
  group_sum,      ///< {groups} the sum of each group's records
};

const char* name_of(operation what);

struct step {
  static constexpr unsigned most_reads = 3, most_results = 2;

  operation what;
  std::array<std::uint32_t, 3> parameters;
  std::vector<unsigned> reads, results;  ///< operand numbers
};

struct operand {
  std::size_t elements;
  unsigned made_by;  ///< a step number; of no meaning for an input

  std::size_t bytes() const { return elements * sizeof(float); }
};

using arrays = std::vector<std::vector<float>>;

struct work {
  std::string name;
  unsigned inputs = 0;
  std::vector<operand> operands;  ///< inputs, then results in the order of their steps
  std::vector<step> steps;        ///< each behind those that it needs
  std::vector<unsigned> outputs;  ///< operand numbers of results, each once
  /// Outputs from inputs, by plain loops on the host. Empty: that takes too long.
  std::function<arrays(arrays)> plainly;

  /// Adds an input, before all steps. Returns its operand number.
  unsigned add_input(std::size_t elements);
  /// Adds a step that writes one result or more, of so many elements. Returns the operand number of
  /// the first one. Each result must be read by a step or be an output.
  unsigned add_step(operation what, const std::array<std::uint32_t, 3>& parameters,
                    std::vector<unsigned> reads, const std::vector<std::size_t>& elements);

  /// Of inputs and outputs: what any way has to copy.
  std::size_t outside_bytes() const;
};

/// An element of an input, in a round: from -0.5 to 0.5, a multiple of 2^-24. Rounds differ in
/// element 0 alone.
float input_element(unsigned input, std::size_t element, unsigned round);

/// The outputs of a round, by plain loops.
arrays compute_plainly(const work& w, unsigned round);

/// The first output that differs by more than rounding; empty: none.
std::string first_wrong(const work& w, const arrays& got, const arrays& expected);

}  // namespace grosr::composition
