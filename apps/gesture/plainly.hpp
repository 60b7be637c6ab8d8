// The stages as plain loops of one thread, for results to be compared with.
#pragma once

#include <vector>

#include "stages.hpp"

namespace grosr::gesture::plainly {

void transform(const camera& c, const frame_shape& of, const std::uint16_t* depths, point* cloud);
void filter(unsigned radius, const frame_shape& of, const point* cloud, point* filtered);
std::vector<cell> summary(const std::vector<point>& filtered);

/// Of a frame of both cameras, side by side.
std::vector<point> filtered_cloud(const frame_shape& of, unsigned radius,
                                  const std::uint16_t* depths);

}  // namespace grosr::gesture::plainly
