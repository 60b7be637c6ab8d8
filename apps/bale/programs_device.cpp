// The list of programs, and the only file that has the world's device code.
#include "matrices.hpp"

namespace grosr::bale {
namespace {

template <class Program>
std::unique_ptr<program> make(const problem& p) {
  return std::make_unique<Program>(p);
}

}  // namespace

const std::vector<named_program>& all_programs() {
  static const std::vector<named_program> all{
      {"histogram", "histogram", "updates", 1u << 26, 1u << 15, make<histogram>},
      {"gather", "index gather", "gathers", 1u << 26, 1u << 14, make<index_gather>},
      {"permutation", "random permutation", "darts", 1u << 25, 1u << 13, make<permutation>},
      {"transpose", "sparse transpose", "nonzeros", 1u << 22, 1u << 10, make<transpose>},
      {"sort", "topological sort", "nonzeros", 1u << 22, 1u << 10, make<topological_sort>},
      {"triangles", "triangle count", "wedges", 1u << 18, 1u << 7, make<count_triangles>},
  };
  return all;
}

}  // namespace grosr::bale
