// Work that keeps every worker busy, and urgent work that has to get past it.
#pragma once

#include <cstdint>
#include <memory>

#include "work/any_runtime.hpp"

namespace grosr::tool {

/// Low-priority background work for one worker: a warp is busy for `tile_ns`, adds 1 to `*tiles`
/// (device memory), and starts itself again until `*stop` (device memory) is set.
struct tile {
  static constexpr unsigned number = 0;
  static constexpr grosr::width width = grosr::width::warp;
  const std::uint32_t* stop;
  std::uint64_t* tiles;
  std::uint32_t tile_ns, reserved;
  GROSR_DEVICE void operator()(auto& context) const;
};

/// The same as one long task of `left` tiles, which yields at tile boundaries when it is asked
/// to: then it adds 1 to `tiles[1]`, starts what is left of itself, and returns.
struct sliced {
  static constexpr unsigned number = 1;
  static constexpr grosr::width width = grosr::width::warp;
  const std::uint32_t* stop;
  std::uint64_t* tiles;
  std::uint32_t tile_ns, left, length;
  GROSR_DEVICE void operator()(auto& context) const;
};

/// Urgent: says in pinned memory that it runs.
struct touch {
  static constexpr unsigned number = 2;
  std::uint32_t* word;
  std::uint32_t value, reserved;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t, simt::scope::system>(*word).store(value, simt::release);
  }
};

std::unique_ptr<any_runtime> make_tile_runtime(const device& d, const runtime_options& options);

}  // namespace grosr::tool
