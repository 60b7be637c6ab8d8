#pragma once

namespace grosr::channels {

/// The lanes that share a reservation: those of a warp that push together, or none.
enum class reserve_by { warp, lane };

}  // namespace grosr::channels
