// Fibers: stacks, and switching between them in a way that exceptions and sanitizers follow.
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <mutex>

namespace grosr::simt::host {

/// Stacks that nobody runs on, linked through their highest words: no allocation, and no standard
/// container whose code ThreadSanitizer might share with instrumented files.
class stack_list {
 public:
  explicit stack_list(std::size_t stack_size) : size_(stack_size) {}
  void push(void* stack);
  void* pop();  ///< null when empty
  std::size_t count() const { return count_; }
  std::size_t stack_size() const { return size_; }

 private:
  std::size_t size_, count_ = 0;
  void* head_ = nullptr;
};

/// Stacks with a guard page below, handed out again and again. Thread-safe.
class stack_pool {
 public:
  static stack_pool& instance();

  /// Usable bytes in one stack: GROSR_HOST_STACK (in KiB; 64 when not set), four
  /// times that under a sanitizer, whose frames and reports are larger.
  std::size_t stack_size() const { return size_; }

  /// Moves up to `count` stacks to `list`; fewer, even none, when the system gives no more memory
  /// or maps.
  void take(stack_list& list, std::size_t count);

  /// Takes all of `list` back; those above the number kept are unmapped.
  void give(stack_list& list);

 private:
  stack_pool();
  void* map_one() const;

  std::size_t page_, size_;
  std::mutex mutex_;
  stack_list free_;
};

/// A place that execution can switch to and from: a fiber, or the thread that runs the fibers.
/// A context stays on the thread that first ran it.
struct context {
  /// Runs on the fiber's stack; the context it returns is switched to, and the fiber is over.
  using entry = context* (*)(void* argument);

  boost::context::fiber fiber;
  context* previous = nullptr;  // who switched here last
  void* stack = nullptr;        // null: the thread itself
  std::size_t stack_size = 0;
  void* fake_stack = nullptr;          // AddressSanitizer's
  const void* thread_stack = nullptr;  // AddressSanitizer's bounds of the thread's own stack
  std::size_t thread_stack_size = 0;
  void* tsan_fiber = nullptr;  // ThreadSanitizer's
  bool is_fiber = false;       // `tsan_fiber` came from announce()
  void* caught = nullptr;      // the C++ runtime's per-thread exception state
  unsigned uncaught = 0;

  context() = default;
  ~context();
  context(const context&) = delete;

  /// Makes the calling thread a context that fibers can switch back to.
  void adopt_thread();

  /// Tells ThreadSanitizer of a fiber to come. Not from inside a fiber: it takes a lock, and an
  /// edge of that lock would hide races between lanes.
  void announce();

  /// Prepares a fiber that runs run(argument) when first switched to, on a stack out of `from`,
  /// which goes to `back_to` when the fiber is over. False when `from` is empty.
  bool start(stack_list& from, stack_list& back_to, entry run, void* argument);

  /// Leaves this context, which must be the running one, for `next`; returns when something
  /// switches back.
  void switch_to(context& next);

 private:
  boost::context::fiber body(boost::context::fiber&& from, entry run, void* argument);
  void leave(context& next, bool for_ever);
  void arrive(boost::context::fiber&& from);
};

}  // namespace grosr::simt::host
