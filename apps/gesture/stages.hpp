// What is computed of a frame, and the kernels that do it: the same for all ways.
//
// transform: depth d of a pixel whose ray is r becomes ((r * 2^16, rounded) * d) >> 12, rounded,
// plus where the camera is.
// filter: a point moves by the weighted mean of how far its neighbours are from it, towards zero.
// The weight of a neighbour is the product of two of Tukey's biweights, by its distance in the
// frame and by the difference of depths.
// summary: points near the screen are counted in cells of it.
#pragma once

#include "geometry.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::gesture {

// ---- filter ----

inline constexpr unsigned most_radius = 4;
/// Depths that differ by as many millimetres have no weight.
inline constexpr std::int32_t depth_reach = 64;

/// By distance in columns and rows, to `radius`; 256 at 0.
struct frame_weights {
  std::int32_t radius = 0;
  std::int32_t at[most_radius + 1][most_radius + 1] = {};
};
frame_weights weights_of(unsigned radius);

// ---- summary ----

inline constexpr std::int32_t cell_side = 20 * units, cell_columns = 32, cell_rows = 24;
inline constexpr std::size_t cells = std::size_t{cell_columns} * cell_rows;
/// A hand is as near to the screen.
inline constexpr std::int32_t near_screen = 400 * units;

/// Of the points over 20 x 20 mm of the screen: where they are, from the cell's left and upper
/// edges; `nearest` is near_screen less the distance of the one nearest to the screen.
struct alignas(16) cell {
  std::uint32_t count, x, y, nearest;
  friend bool operator==(const cell&, const cell&) = default;
};

// ---- on a device ----

void launch_transform(simt::stream& s, const camera& c, const frame_shape& of,
                      const std::uint16_t* depths, point* cloud);
/// Two clouds, to both side by side.
void launch_filter(simt::stream& s, const frame_weights& w, const frame_shape& of,
                   const point* left, const point* right, point* filtered);
void launch_clear(simt::stream& s, cell* summary);
/// Adds to what is there. Of filtered clouds of all cameras.
void launch_summary(simt::stream& s, const frame_shape& of, const point* filtered, cell* summary);

}  // namespace grosr::gesture
