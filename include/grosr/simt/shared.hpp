// Storage that the threads of one block share.
#pragma once

#include <cstdint>
#include <type_traits>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/config.hpp"
#include "grosr/simt/detail/host_machine.hpp"

namespace grosr::simt {

/// The block's one object of type T: the same for every thread and every call in a kernel. T is
/// trivial; its bytes are undefined on a GPU until the block writes them. At most 48 KB in all.
template <class T>
GROSR_DEVICE inline T& block_shared() {
  static_assert(std::is_trivially_default_constructible_v<T> && std::is_trivially_copyable_v<T>,
                "grosr: block_shared<T> needs a trivial T");
#if GROSR_ON_GPU
  __shared__ alignas(alignof(T)) unsigned char bytes[sizeof(T)];
  return *reinterpret_cast<T*>(bytes);
#else
  static const char key = 0;
  return *static_cast<T*>(host::block_shared(&key, sizeof(T), alignof(T)));
#endif
}

/// What a function that is called through a pointer was handed of block_shared(), which it must not
/// ask for itself: it would take that memory in every kernel whose functions may call it.
template <class T>
GROSR_DEVICE inline T& in_block_shared(T* p) {
#if GROSR_ON_GPU
  // There and back, so that the compiler knows which memory it is. There in assembly: two
  // conversions that it knows cancel each other out.
  std::uint64_t at;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(at) : "l"(p));
  return *static_cast<T*>(__cvta_shared_to_generic(at));
#else
  return *p;
#endif
}

/// A pointer, not null, into memory that is no block's or thread's own, for the compiler to know
/// so; where it does not, accesses take longer and are not put off behind those to block-shared
/// memory.
template <class T>
GROSR_DEVICE inline T* in_global_memory(T* p) {
#if GROSR_ON_GPU
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

// What lanes of one warp do to words of block_shared() that they share, in few instructions. On a
// GPU a warp's accesses to block-shared memory are made in the order in which its lanes come to
// them, so that nothing is to be waited for; elsewhere these acquire and release.

/// Adds to a word and returns what it was.
GROSR_DEVICE inline std::uint32_t shared_add(std::uint32_t& word, std::uint32_t n) {
#if GROSR_ON_GPU
  return atomicAdd(&word, n);
#else
  return atomic_ref<std::uint32_t, scope::block>(word).fetch_add(n, acq_rel);
#endif
}

/// Takes a lock that only lanes of this warp take: whether it was free.
GROSR_DEVICE inline bool shared_try_lock(std::uint32_t& word) {
#if GROSR_ON_GPU
  const bool was_free = atomicExch(&word, 1) == 0;
  asm volatile("" ::: "memory");  // the compiler keeps the order too
  return was_free;
#else
  return atomic_ref<std::uint32_t, scope::block>(word).exchange(1, acquire) == 0;
#endif
}

/// Reads a word, before what follows.
GROSR_DEVICE inline std::uint32_t shared_load(std::uint32_t& word) {
#if GROSR_ON_GPU
  const std::uint32_t value = *static_cast<volatile std::uint32_t*>(&word);
  asm volatile("" ::: "memory");
  return value;
#else
  return atomic_ref<std::uint32_t, scope::block>(word).load(acquire);
#endif
}

/// Writes a word, after what was before: also to give such a lock back, with 0.
GROSR_DEVICE inline void shared_store(std::uint32_t& word, std::uint32_t value) {
#if GROSR_ON_GPU
  asm volatile("" ::: "memory");
  *static_cast<volatile std::uint32_t*>(&word) = value;
#else
  atomic_ref<std::uint32_t, scope::block>(word).store(value, release);
#endif
}

}  // namespace grosr::simt
