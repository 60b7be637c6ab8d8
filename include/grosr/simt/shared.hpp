// Storage that the threads of one block share.
#pragma once

#include <type_traits>

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

}  // namespace grosr::simt
