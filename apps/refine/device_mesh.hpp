// The mesh on a device, whose kernel maps host memory for it and gives it back.
#pragma once

#include <vector>

#include "grosr/simt/buffer.hpp"
#include "grosr/sys/server.hpp"
#include "mesh.hpp"

namespace grosr::refine {

struct step_result {
  std::uint64_t refined = 0;     ///< blocks with fine data after the step
  std::uint64_t total = 0;       ///< sum of all cells, which no step changes
  std::uint64_t given_back = 0;  ///< blocks whose host memory was given back
};

class device_mesh {
 public:
  /// Has a kernel map host memory for the fine data of all blocks. `gives_back`: the kernel gives
  /// that of a block back when it coarsens it. Throws error(out_of_memory) where there is none.
  device_mesh(const device& d, sys::server& server, const mesh_shape& m, bool gives_back);
  /// Has a kernel unmap it.
  ~device_mesh();
  device_mesh(const device_mesh&) = delete;

  /// One step, in one launch. Steps come in order. Throws std::runtime_error when a call failed.
  step_result step(std::uint32_t number);

  /// The coarse data of all blocks.
  std::vector<std::uint32_t> coarse() const;

 private:
  enum : unsigned { refined, total, given_back, next, failed, code, counters };
  device where_;
  sys::server& server_;
  mesh_shape shape_;
  bool gives_back_;
  unsigned places_;
  std::vector<int> files_;  // through which bytes get from device memory to mapped memory and back
  simt::buffer<int> file_of_;
  simt::buffer<std::uint32_t> coarse_, scratch_;
  simt::buffer<std::uint8_t> is_fine_;
  simt::buffer<std::uint64_t> counters_;
  std::uint64_t mapped_ = 0;
};

}  // namespace grosr::refine
