// Two depth cameras beside a screen, in whole numbers, so that every processor computes the same.
//
// The screen's middle is the origin; x goes right, y down, z towards the user. Lengths are
// sixteenths of a millimetre where nothing else is said, and depths are millimetres.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::gesture {

inline constexpr unsigned cameras = 2;
inline constexpr std::int32_t units = 16;  ///< in a millimetre
/// Depths outside of these are no readings.
inline constexpr std::int32_t least_depth = 200, most_depth = 8000;

/// Pixels of a frame of one camera.
struct frame_shape {
  std::uint32_t width = 0, height = 0;

  std::size_t pixels() const { return std::size_t{width} * height; }
  /// Of the frames of both cameras.
  std::size_t bytes() const { return cameras * pixels() * sizeof(std::uint16_t); }
  friend bool operator==(const frame_shape&, const frame_shape&) = default;
};

/// A point on the screen's axes, in millimetres: multiples of 1/16, so that float has them exactly.
/// `depth`: how far from the camera's plane, in whole millimetres; 0: no reading, and x, y, z are
/// 0.
struct alignas(16) point {
  float x, y, z, depth;
  friend bool operator==(const point&, const point&) = default;
};

/// Where the rays of a camera's pixels go: intrinsics and a rotation in one. A ray comes to depth 1
/// in the camera's direction, and its parts are multiples of 2^-20. `at`: where the camera is.
struct camera {
  std::array<std::int32_t, 3> corner, per_column, per_row;
  std::array<std::int32_t, 3> at;
};

/// The camera to the left of the screen, 0, or to the right, 1, which looks across the screen.
camera camera_of(const frame_shape& s, unsigned number);

}  // namespace grosr::gesture
