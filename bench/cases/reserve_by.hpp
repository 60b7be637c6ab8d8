#pragma once

namespace grosr::channels {

/// Who shares a reservation: the lanes of a warp that push together, or nobody.
enum class reserve_by { warp, lane };

}  // namespace grosr::channels
