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

template <granularity G, class Context>
class awaiting_caller;

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

  /// For context.await(): the same caller, for one call whose result goes to `slot`, of what
  /// `context` has joined.
  template <class Context>
  GROSR_DEVICE auto await(Context* context, queue::completion_target target, long* slot) const {
    static_assert((G == granularity::lane || G == granularity::warp) && !Started,
                  "grosr: lanes and warps await calls; in a task of a block let one thread, or one "
                  "warp, do it");
    return awaiting_caller<G, Context>(*this, context, target, slot);
  }
  /// Whether this thread's arguments are those of the group's call; callers of lanes and warps.
  GROSR_DEVICE bool leads() const {
    return G == granularity::lane || simt::lane_id() == simt::lowest_bit(mask_);
  }

  GROSR_DEVICE const view& where() const { return *view_; }
  GROSR_DEVICE std::uint32_t mask() const { return mask_; }
  GROSR_DEVICE grid_point& point() const { return *point_; }

 private:
  const view* view_ = nullptr;
  grid_point* point_ = nullptr;
  std::uint32_t mask_ = 0;
};

/// What context.await() returns: a caller of one call, which returns at once.
template <granularity G, class Context>
class awaiting_caller : public caller<G, ordering::strong, true> {
  using base = caller<G, ordering::strong, true>;

 public:
  GROSR_DEVICE awaiting_caller(const caller<G>& c, Context* context,
                               queue::completion_target target, long* slot)
      : base(&c.where(), c.mask()), context_(context), slot_(slot), target_(target) {}

  // It is the caller of one call, of one kind.
  void start() const = delete;
  void attempt() const = delete;
  void await() const = delete;

  /// Of the thread that leads: whether the call has a place to come back to. It counts from now on.
  GROSR_DEVICE bool begin() const {
    if (target_.bits == 0) return false;
    context_->begin_await();
    return true;
  }
  /// Of the same, after begin(): whether the call was made, or why not.
  GROSR_DEVICE void end(bool made, long why) const { context_->end_await(made, why, slot_); }
  GROSR_DEVICE queue::completion_target target() const { return target_; }

 private:
  Context* context_;
  long* slot_;
  queue::completion_target target_;
};
template <class Caller>
inline constexpr bool is_awaiting = false;
template <granularity G, class Context>
inline constexpr bool is_awaiting<awaiting_caller<G, Context>> = true;

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
