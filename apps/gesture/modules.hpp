// The stages as modules that can be put together freely, because each copies for itself: host
// memory in, host memory out. Memory of theirs is pinned.
#pragma once

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"
#include "stages.hpp"

namespace grosr::gesture {

/// Depths of both cameras to clouds of both.
class transform_module {
 public:
  transform_module(const device& d, const frame_shape& of);
  /// `depths` is pinned. Waits for the result, which is in result().
  void operator()(const std::uint16_t* depths);
  const point* result() const { return result_.data(); }

 private:
  const frame_shape shape_;
  camera cameras_[gesture::cameras];
  simt::stream stream_;
  simt::buffer<std::uint16_t> depths_;
  simt::buffer<point> cloud_, result_;
};

class filter_module {
 public:
  filter_module(const device& d, const frame_shape& of, unsigned radius);
  void operator()(const point* cloud);
  const point* result() const { return result_.data(); }

 private:
  const frame_shape shape_;
  const frame_weights weights_;
  simt::stream stream_;
  simt::buffer<point> cloud_, filtered_, result_;
};

class summary_module {
 public:
  summary_module(const device& d, const frame_shape& of);
  void operator()(const point* filtered);
  const cell* result() const { return result_.data(); }

 private:
  const frame_shape shape_;
  simt::stream stream_;
  simt::buffer<point> filtered_;
  simt::buffer<cell> summary_, result_;
};

}  // namespace grosr::gesture
