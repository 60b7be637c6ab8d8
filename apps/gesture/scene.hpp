// What the cameras see where nothing is recorded: two hands that move over the screen and push at
// times, the user behind them, and walls; with noise.
#pragma once

#include "recording.hpp"

namespace grosr::gesture {

/// The same for the same numbers on the same build. Shows progress. Throws usage_error for more
/// than most_recorded_bytes.
recording draw(const frame_shape& s, std::uint32_t frames, std::uint32_t rate, std::uint64_t seed);

}  // namespace grosr::gesture
