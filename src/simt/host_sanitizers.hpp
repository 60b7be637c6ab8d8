// What the sanitizers must be told about lanes. Every function is a no-op in a program that is not
// linked with that sanitizer: the runtimes' entry points are weak, so one build of the library
// serves all programs.
//
// ThreadSanitizer sees each lane as a thread of its own, and switches without an edge between the
// two lanes: an access that only the schedule orders is reported as a race. The edges that lanes
// may rely on (collectives, sync_block, begin and end of a launch) are given by acquire() and
// release(). The files src/simt/host_*.cpp are themselves compiled without -fsanitize=thread,
// because the scheduler's own state is shared by lanes that it never runs at the same time.
#pragma once

#include <pthread.h>

#include <cstddef>

extern "C" {
#define GROSR_WEAK __attribute__((weak))
GROSR_WEAK void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, size_t size);
GROSR_WEAK void __sanitizer_finish_switch_fiber(void* fake_stack, const void** old_bottom,
                                                size_t* old_size);
GROSR_WEAK void __asan_poison_memory_region(const volatile void* p, size_t size);
GROSR_WEAK void __asan_unpoison_memory_region(const volatile void* p, size_t size);
GROSR_WEAK void __lsan_register_root_region(const void* p, size_t size);
GROSR_WEAK void __lsan_unregister_root_region(const void* p, size_t size);
GROSR_WEAK void* __tsan_get_current_fiber();
GROSR_WEAK void* __tsan_create_fiber(unsigned flags);
GROSR_WEAK void __tsan_destroy_fiber(void* fiber);
GROSR_WEAK void __tsan_switch_to_fiber(void* fiber, unsigned flags);
GROSR_WEAK void __tsan_acquire(void* address);
GROSR_WEAK void __tsan_release(void* address);
GROSR_WEAK void __tsan_atomic32_store(volatile int* address, int value, int order);
#undef GROSR_WEAK
}

namespace grosr::simt::host::sanitizer {

inline bool has_asan() { return __asan_poison_memory_region != nullptr; }
inline bool has_tsan() { return __tsan_create_fiber != nullptr; }

inline void poison(void* p, std::size_t size) {
  if (__asan_poison_memory_region != nullptr) __asan_poison_memory_region(p, size);
}
inline void unpoison(void* p, std::size_t size) {
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(p, size);
}

/// While it lives, LeakSanitizer sees what the calling thread's stack holds, whichever fiber the
/// thread runs: to AddressSanitizer a thread has one stack, the one it runs on.
class thread_stack_in_sight {
 public:
  thread_stack_in_sight() {
    if (__lsan_register_root_region == nullptr) return;
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    if (pthread_attr_getstack(&attributes, &stack_, &size_) != 0) stack_ = nullptr;
    pthread_attr_destroy(&attributes);
    if (stack_ != nullptr) __lsan_register_root_region(stack_, size_);
  }
  ~thread_stack_in_sight() {
    if (stack_ != nullptr) __lsan_unregister_root_region(stack_, size_);
  }
  thread_stack_in_sight(const thread_stack_in_sight&) = delete;
  thread_stack_in_sight& operator=(const thread_stack_in_sight&) = delete;

 private:
  void* stack_ = nullptr;
  std::size_t size_ = 0;
};

/// One place that edges go through. first() forgets the edges of an earlier use.
struct edge {
  int word = 0;

  void first() {
    constexpr int release_order = 3;  // __tsan_memory_order_release: a store replaces the history
    if (has_tsan()) __tsan_atomic32_store(&word, 0, release_order);
  }
  void release() {
    if (has_tsan()) __tsan_release(&word);
  }
  void acquire() {
    if (has_tsan()) __tsan_acquire(&word);
  }
};

}  // namespace grosr::simt::host::sanitizer
