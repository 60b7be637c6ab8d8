// What launching a kernel and asking about it do without the kernel's type.
#include "grosr/simt/launch.hpp"

#include <fmt/format.h>

#include "simt/backend.hpp"

namespace grosr::simt {
namespace detail {
namespace {

// Throws error(invalid_option) unless there is a block, and threads are a multiple of 32 to 1024.
void check_shape(const device& d, shape grid) {
  if (grid.blocks == 0 || grid.threads == 0 || grid.threads > 1024 ||
      grid.threads % warp_size != 0) {
    throw error(
        errc::invalid_option,
        fmt::format("a launch of {} blocks of {} threads on {}; ask for at least 1 block of a "
                    "multiple of 32 threads up to 1024",
                    grid.blocks, grid.threads, d.name()));
  }
}

}  // namespace

void throw_not_built(const device& d) {
  throw error(
      errc::not_built,
      fmt::format("a kernel was launched on {} from a file that nvcc did not compile; add the "
                  "file with grosr_device_sources()",
                  d.name()));
}

bool launch_on_gpu(stream& s, shape grid, const void* entry, const void* kernel) {
  const device where = s.where();
  check_shape(where, grid);
  if (!where.is_cuda()) return false;
  if (entry == nullptr) throw_not_built(where);
  cuda_backend::launch(where, s.native(), grid, entry, kernel);
  return true;
}

kernel_fit fit(const device& d, const void* entry, unsigned threads) {
  if (!d.is_cuda()) return {1, 0, 0, 0};
  if (entry == nullptr) throw_not_built(d);
  return cuda_backend::fit(d, entry, threads);
}

}  // namespace detail

std::size_t reserve_stack(const device& d, std::size_t bytes) {
  return d.is_cuda() ? cuda_backend::reserve_stack(d, bytes) : 0;
}

}  // namespace grosr::simt
