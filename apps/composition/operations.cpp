#include "operations.hpp"

namespace grosr::composition {

void launch_step(simt::stream& s, const step& what, const places& at) {
  switch (what.what) {
    case operation::gemm:
    case operation::madd:
    case operation::mcopy:
      return launch_matrix_step(s, what, at);
    case operation::bitonic_local:
    case operation::bitonic_pass:
      return launch_bitonic_step(s, what, at);
    case operation::fdtd_magnetic:
    case operation::fdtd_electric:
      return launch_fdtd_step(s, what, at);
    case operation::pca_centre:
    case operation::pca_column:
    case operation::pca_loading:
    case operation::pca_normalise:
    case operation::pca_score:
    case operation::pca_deflate:
      return launch_pca_step(s, what, at);
    case operation::group_key:
    case operation::group_count:
    case operation::group_size:
    case operation::group_start:
    case operation::group_place:
    case operation::group_scatter:
    case operation::group_sum:
      return launch_group_step(s, what, at);
  }
}

}  // namespace grosr::composition
