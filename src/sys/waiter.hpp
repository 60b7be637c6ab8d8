// A call that waits, and queues of them. Their owner keeps them; nothing is allocated.
#pragma once

#include <cstdint>

#include "sys/deadlines.hpp"

namespace grosr::sys {

/// Why a waiting call is tried again or ended.
enum class wake {
  ready,      ///< the descriptor is, or was when it was looked at
  timed_out,  ///< the deadline has passed
  closed,     ///< the descriptor is being closed, or no longer is the file that was waited for
  stopped,    ///< the reactor was stopped
};

/// A call that waits: one wait at a time. From reactor::wait() on it is the reactor's, until
/// `resume` is called with a cause other than `ready`, or returns true.
struct waiter : private timer {
  /// Called on the reactor's thread, no lock held; must not throw. For `ready`: whether the call is
  /// done; false has it wait on, in its place. For other causes the value has no meaning. Once it
  /// is done, also while `resume` runs, its owner may free it or have it wait again.
  using function = bool (*)(waiter&, wake);
  function resume = nullptr;

  waiter() = default;
  explicit waiter(function f) : resume(f) {}
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

 private:
  friend class reactor;
  friend class waiter_queue;
  waiter* next_ = nullptr;
  waiter* previous_ = nullptr;
  std::uint64_t number_ = 0;  // in order of coming
  int descriptor_ = -1;
  short events_ = 0;
  bool timed_ = false;
};

class waiter_queue {
 public:
  waiter* first() const { return first_; }
  waiter* last() const { return last_; }
  bool empty() const { return first_ == nullptr; }
  void push_back(waiter& w) { insert_after(last_, w); }

  /// `before`: of this queue, or nullptr for its front.
  void insert_after(waiter* before, waiter& w) {
    w.previous_ = before;
    w.next_ = before != nullptr ? before->next_ : first_;
    (before != nullptr ? before->next_ : first_) = &w;
    (w.next_ != nullptr ? w.next_->previous_ : last_) = &w;
  }

  void remove(waiter& w) {
    (w.previous_ != nullptr ? w.previous_->next_ : first_) = w.next_;
    (w.next_ != nullptr ? w.next_->previous_ : last_) = w.previous_;
    w.next_ = w.previous_ = nullptr;
  }

 private:
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

}  // namespace grosr::sys
