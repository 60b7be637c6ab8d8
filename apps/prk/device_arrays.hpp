// The arrays of a problem in device memory.
#pragma once

#include "grosr/simt/buffer.hpp"
#include "problem.hpp"

namespace grosr::prk {

class device_arrays {
 public:
  /// Has them as they are initially.
  device_arrays(const device& d, const std::vector<array_description>& what) {
    for (const array_description& a : what) {
      std::vector<double> initial(a.elements);
      for (std::size_t i = 0; i < a.elements; ++i) initial[i] = a.initial(i);
      buffers_.emplace_back(d, simt::space::device, a.elements);
      buffers_.back().copy_from(initial);
    }
  }

  double* at(unsigned number) const { return buffers_[number].data(); }
  arrays read() const {
    arrays all;
    for (const auto& b : buffers_) {
      all.emplace_back(b.size());
      b.copy_to(all.back());
    }
    return all;
  }

 private:
  std::vector<simt::buffer<double>> buffers_;
};

}  // namespace grosr::prk
