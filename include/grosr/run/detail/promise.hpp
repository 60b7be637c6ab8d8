// What the host waits for: the result of a task that it forked.
#pragma once

#include <cstdint>

#include "grosr/run/task.hpp"

namespace grosr::run {

/// What the host waits for; pinned memory, a half line each. `done` is written last: the
/// generation.
struct alignas(64) promise {
  std::uint32_t done;
  std::int32_t status;
  std::uint32_t reserved[2];
  unsigned char value[max_result_bytes];
};
static_assert(sizeof(promise) == 64);

}  // namespace grosr::run
