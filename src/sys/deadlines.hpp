// Deadlines in order: a pairing heap of nodes that lie in what waits. Nothing is allocated.
#pragma once

#include <chrono>
#include <utility>

namespace grosr::sys {

struct timer {
  std::chrono::steady_clock::time_point when{};
  bool set = false;            // is in the heap
  bool of_descriptor = false;  // not a waiter's

 private:
  friend class deadlines;
  timer* child_ = nullptr;
  timer* next_ = nullptr;      // sibling
  timer* previous_ = nullptr;  // sibling, or parent of the first child
};

/// Adding costs O(1), removing O(log n) amortized.
class deadlines {
 public:
  /// The earliest, or nullptr.
  timer* first() const { return root_; }

  void add(timer& t) {
    t.set = true;
    root_ = merge(root_, &t);
  }

  void remove(timer& t) {
    if (!t.set) return;
    timer* rest = merge_all(std::exchange(t.child_, nullptr));
    if (&t == root_) {
      root_ = rest;
    } else {
      (t.previous_->child_ == &t ? t.previous_->child_ : t.previous_->next_) = t.next_;
      if (t.next_ != nullptr) t.next_->previous_ = t.previous_;
      t.next_ = t.previous_ = nullptr;
      root_ = merge(root_, rest);
    }
    t.set = false;
  }

 private:
  static timer* merge(timer* a, timer* b) {
    if (a == nullptr || b == nullptr) return a != nullptr ? a : b;
    if (b->when < a->when) std::swap(a, b);
    b->next_ = a->child_;
    b->previous_ = a;
    if (b->next_ != nullptr) b->next_->previous_ = b;
    a->child_ = b;
    return a;
  }

  static timer* merge_all(timer* first) {
    timer* pairs = nullptr;  // the last pair first
    while (first != nullptr) {
      timer *a = first, *b = a->next_;
      first = b != nullptr ? b->next_ : nullptr;
      for (timer* t : {a, b})
        if (t != nullptr) t->next_ = t->previous_ = nullptr;
      a = merge(a, b);
      a->next_ = pairs;
      pairs = a;
    }
    timer* all = nullptr;
    while (pairs != nullptr) {
      timer* t = pairs;
      pairs = std::exchange(t->next_, nullptr);
      all = merge(all, t);
    }
    return all;
  }

  timer* root_ = nullptr;
};

}  // namespace grosr::sys
