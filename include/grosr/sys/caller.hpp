// The caller of a system call: a lane, some lanes of a warp, a block or a grid, waiting for it or
// not.
#pragma once

#include "grosr/sys/detail/layout.hpp"

namespace grosr::sys {

enum class granularity : std::uint8_t { lane, warp, block, grid };
enum class ordering : std::uint8_t { strong, producer, consumer };

template <ordering O>
struct ordering_tag {};
/// The call begins when all threads of the block have come, and all go on when it has ended.
inline constexpr ordering_tag<ordering::strong> strong{};
/// It begins when all have come; only warp 0 stays for the result. For calls that take data.
inline constexpr ordering_tag<ordering::producer> producer{};
/// It begins when warp 0 has come; all go on when it has ended. For calls that bring data.
inline constexpr ordering_tag<ordering::consumer> consumer{};

/// Where the blocks of a grid meet for one call: zeroed device memory, zeroed again before the
/// next.
struct grid_point {
  std::uint32_t arrived;
  std::uint32_t done;
  std::int64_t result;
};

/// The first argument of every call; a small value. See server_ref, which makes them.
/// Lanes that are at one call together have the same server, and callers of one type.
template <granularity G, ordering O = ordering::strong, bool Started = false, bool Attempts = false>
class caller {
 public:
  static constexpr granularity group = G;
  static constexpr ordering order = O;
  static constexpr bool started = Started;
  static constexpr bool attempts = Attempts;

  caller() = default;  ///< of no server: makes no calls
  GROSR_DEVICE explicit caller(const view* v, std::uint32_t mask = simt::full_mask,
                               grid_point* point = nullptr)
      : view_(v), point_(point), mask_(mask) {}

  /// The same caller, whose calls return a token at once.
  GROSR_DEVICE caller<G, O, true, Attempts> start() const {
    return caller<G, O, true, Attempts>(view_, mask_, point_);
  }

  /// The same caller, whose calls fail with -EAGAIN where they would wait for room.
  GROSR_DEVICE caller<G, O, Started, true> attempt() const {
    return caller<G, O, Started, true>(view_, mask_, point_);
  }

  GROSR_DEVICE const view& where() const { return *view_; }
  GROSR_DEVICE std::uint32_t mask() const { return mask_; }
  GROSR_DEVICE grid_point& point() const { return *point_; }

 private:
  const view* view_ = nullptr;
  grid_point* point_ = nullptr;
  std::uint32_t mask_ = 0;
};

/// The device's view of a server, which must live; passed by value. Calls made with it are each
/// lane's own.
class server_ref : public caller<granularity::lane> {
 public:
  server_ref() = default;
  GROSR_DEVICE explicit server_ref(const view* v) : caller<granularity::lane>(v) {}

  GROSR_DEVICE caller<granularity::lane> lane() const { return *this; }
  /// The lanes of `mask`, the same in all of them, make one call together.
  GROSR_DEVICE caller<granularity::warp> warp(std::uint32_t mask = simt::full_mask) const {
    return caller<granularity::warp>(&where(), mask);
  }
  GROSR_DEVICE caller<granularity::block> block() const {
    return caller<granularity::block>(&where());
  }
  template <ordering O>
  GROSR_DEVICE caller<granularity::block, O> block(ordering_tag<O>) const {
    return caller<granularity::block, O>(&where());
  }
  /// All blocks of the grid make one call together. There is no strong one: blocks that wait for
  /// others which have not begun would wait for ever.
  template <ordering O>
  GROSR_DEVICE caller<granularity::grid, O> grid(ordering_tag<O>, grid_point* point) const {
    static_assert(O != ordering::strong, "grosr: calls of a grid are producers or consumers");
    return caller<granularity::grid, O>(&where(), simt::full_mask, point);
  }
};

}  // namespace grosr::sys
