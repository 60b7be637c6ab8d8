#pragma once

namespace grosr::flow {

/// Who shares a reservation: the lanes of a warp that push together, or nobody.
enum class reserve_by { warp, lane };

}  // namespace grosr::flow
