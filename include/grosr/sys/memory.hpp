// Memory of the host's address space. A kernel may unmap what it maps, advise on and pass to calls
// by its address (syscall); it touches such memory itself only where the device reaches all of the
// host's memory, as on host:N. Device memory comes from alloc/.
#pragma once

#include "grosr/sys/detail/wrap.hpp"

namespace grosr::sys {

/// Maps `bytes`: the address, or -errno. -EPERM: MAP_FIXED, PROT_EXEC. A `file` is one that kernels
/// have, or -1 with MAP_ANONYMOUS.
template <class Caller>
GROSR_DEVICE auto mmap(const Caller& c, void* at, std::size_t bytes, int protection, int flags,
                       int file, std::int64_t offset) {
  return invoke(c, detail::make<0>(SYS_mmap, at, bytes, protection, flags, file, offset));
}

/// Unmaps what kernels have mapped; else -EPERM.
template <class Caller>
GROSR_DEVICE auto munmap(const Caller& c, void* at, std::size_t bytes) {
  return invoke(c, detail::make<0>(SYS_munmap, at, bytes));
}

/// Says how what kernels have mapped will be used; else -EPERM.
template <class Caller>
GROSR_DEVICE auto madvise(const Caller& c, void* at, std::size_t bytes, int advice) {
  return invoke(c, detail::make<0>(SYS_madvise, at, bytes, advice));
}

}  // namespace grosr::sys
