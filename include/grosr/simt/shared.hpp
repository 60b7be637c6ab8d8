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
  // There and back, so that the compiler knows which memory it is.
  return *static_cast<T*>(__cvta_shared_to_generic(__cvta_generic_to_shared(p)));
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

/// Adds to a word of block_shared() and returns what it was, in few instructions; for lanes of one
/// warp. On a GPU those see what they do to block-shared memory in the order in which it is done;
/// elsewhere it acquires and releases.
GROSR_DEVICE inline std::uint32_t shared_add(std::uint32_t& word, std::uint32_t n) {
#if GROSR_ON_GPU
  return atomicAdd(&word, n);
#else
  return atomic_ref<std::uint32_t, scope::block>(word).fetch_add(n, acq_rel);
#endif
}

}  // namespace grosr::simt
