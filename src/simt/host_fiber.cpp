#include "simt/host_fiber.hpp"

#include <cxxabi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "simt/environment.hpp"
#include "simt/host_sanitizers.hpp"

namespace grosr::simt::host {
namespace {

constexpr std::size_t kept_stacks = 4096;

// The head of __cxa_eh_globals, as the C++ ABI lays it out: what a thread is throwing and catching.
struct exception_state {
  void* caught;
  unsigned uncaught;
};

exception_state& exceptions() {
  return *reinterpret_cast<exception_state*>(abi::__cxa_get_globals());
}

// Lets Boost give a stack back when its fiber is over.
struct returning_allocator {
  void* stack;
  std::size_t size;
  stack_list* home;

  boost::context::stack_context allocate() {
    boost::context::stack_context c;
    c.size = size;
    c.sp = static_cast<char*>(stack) + size;
    return c;
  }
  void deallocate(boost::context::stack_context&) { home->push(stack); }
};

// ThreadSanitizer takes about 0.3 ms to make a fiber. A reused one still knows what its last lane
// knew, so within one launch none is reused.
class tsan_fibers {
 public:
  void* take() {
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        void* fiber = free_.back();
        free_.pop_back();
        return fiber;
      }
    }
    return __tsan_create_fiber(0);
  }

  void give(void* fiber) {
    std::lock_guard lock(mutex_);
    free_.push_back(fiber);
  }

 private:
  std::mutex mutex_;
  std::vector<void*> free_;
};

// Made before any code runs, since ThreadSanitizer does not see this file and so not what guards a
// function's static; never destroyed, since lanes may run until the very end.
union never_destroyed {
  constexpr never_destroyed() : fibers() {}
  ~never_destroyed() {}
  tsan_fibers fibers;
};
constinit never_destroyed all;

std::size_t page_size() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t chosen_stack_size() {
  std::size_t kib = from_environment(host_stack).value_or(64);
  if (sanitizer::has_asan() || sanitizer::has_tsan()) kib *= 4;
  return (kib * 1024 + page_size() - 1) / page_size() * page_size();
}

}  // namespace

void stack_list::push(void* stack) {
  sanitizer::unpoison(stack, size_);  // the last fiber there never returned from its first frame
  void* link = static_cast<char*>(stack) + size_ - sizeof(void*);
  *static_cast<void**>(link) = head_;
  head_ = stack;
  ++count_;
}

void* stack_list::pop() {
  void* stack = head_;
  if (stack == nullptr) return nullptr;
  head_ =
      *static_cast<void**>(static_cast<void*>(static_cast<char*>(stack) + size_ - sizeof(void*)));
  --count_;
  return stack;
}

stack_pool& stack_pool::instance() {
  static stack_pool pool;
  return pool;
}

stack_pool::stack_pool() : page_(page_size()), size_(chosen_stack_size()), free_(size_) {}

void* stack_pool::map_one() const {
  void* base = mmap(nullptr, size_ + page_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  if (mprotect(base, page_, PROT_NONE) != 0) {
    munmap(base, size_ + page_);
    return nullptr;
  }
  return static_cast<char*>(base) + page_;
}

void stack_pool::take(stack_list& list, std::size_t count) {
  std::lock_guard lock(mutex_);
  for (; count > 0; --count) {
    void* stack = free_.pop();
    if (stack == nullptr) stack = map_one();
    if (stack == nullptr) return;
    list.push(stack);
  }
}

void stack_pool::give(stack_list& list) {
  std::lock_guard lock(mutex_);
  while (void* stack = list.pop()) {
    if (free_.count() < kept_stacks) {
      free_.push(stack);
    } else {
      munmap(static_cast<char*>(stack) - page_, size_ + page_);
    }
  }
}

context::~context() {
  if (tsan_fiber != nullptr && is_fiber) all.fibers.give(tsan_fiber);
}

void context::announce() {
  if (!sanitizer::has_tsan()) return;
  is_fiber = true;
  tsan_fiber = all.fibers.take();
}

void context::adopt_thread() {
  if (sanitizer::has_tsan()) tsan_fiber = __tsan_get_current_fiber();
}

bool context::start(stack_list& from, stack_list& back_to, entry run, void* argument) {
  stack = from.pop();
  if (stack == nullptr) return false;
  stack_size = from.stack_size();
  fiber =
      boost::context::fiber(std::allocator_arg, returning_allocator{stack, stack_size, &back_to},
                            [this, run, argument](boost::context::fiber&& from) {
                              return body(std::move(from), run, argument);
                            });
  return true;
}

boost::context::fiber context::body(boost::context::fiber&& from, entry run, void* argument) {
  arrive(std::move(from));
  context* next = run(argument);
  leave(*next, true);
  return std::move(next->fiber);
}

void context::switch_to(context& next) {
  leave(next, false);
  arrive(std::move(next.fiber).resume());
}

void context::leave(context& next, bool for_ever) {
  exception_state& state = exceptions();
  caught = std::exchange(state.caught, next.caught);
  uncaught = std::exchange(state.uncaught, next.uncaught);
  next.previous = this;
  if (__sanitizer_start_switch_fiber != nullptr) {
    const bool to_thread = next.stack == nullptr;
    __sanitizer_start_switch_fiber(for_ever ? nullptr : &fake_stack,
                                   to_thread ? next.thread_stack : next.stack,
                                   to_thread ? next.thread_stack_size : next.stack_size);
  }
  if (sanitizer::has_tsan()) {
    constexpr unsigned no_sync = 1;
    __tsan_switch_to_fiber(next.tsan_fiber, no_sync);
  }
}

void context::arrive(boost::context::fiber&& from) {
  if (from) previous->fiber = std::move(from);  // else it is over
  if (__sanitizer_finish_switch_fiber != nullptr) {
    const void* bottom = nullptr;
    std::size_t size = 0;
    __sanitizer_finish_switch_fiber(fake_stack, &bottom, &size);
    if (previous->stack == nullptr) {
      previous->thread_stack = bottom;
      previous->thread_stack_size = size;
    }
  }
}

}  // namespace grosr::simt::host
