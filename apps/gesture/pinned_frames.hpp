// Recorded frames where a device copies from: the buffers of the cameras' driver.
#pragma once

#include <algorithm>

#include "grosr/simt/buffer.hpp"
#include "recording.hpp"

namespace grosr::gesture {

class pinned_frames {
 public:
  pinned_frames(const device& d, const recording& r)
      : shape_(r.shape), count_(r.frames), all_(d, simt::space::pinned, r.depths.size()) {
    std::copy(r.depths.begin(), r.depths.end(), all_.data());
  }

  std::uint32_t count() const { return count_; }
  const std::uint16_t* of(std::uint64_t frame, unsigned camera = 0) const {
    return all_.data() + (frame % count_ * cameras + camera) * shape_.pixels();
  }

 private:
  const frame_shape shape_;
  const std::uint32_t count_;
  simt::buffer<std::uint16_t> all_;
};

}  // namespace grosr::gesture
