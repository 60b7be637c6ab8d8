// Vectors for hundreds of millions of values: not filled before they are written, and in large
// pages.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace grosr::graphs {

/// Leaves new values as they are; what is large comes zeroed from the system, page by page as it is
/// first written.
template <class T>
struct huge_page_allocator {
  using value_type = T;

#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t large = ~std::size_t{0};
#else
  static constexpr std::size_t large = std::size_t{4} << 20;
#endif

  huge_page_allocator() = default;
  template <class U>
  huge_page_allocator(const huge_page_allocator<U>&) {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes < large) return static_cast<T*>(::operator new(bytes));
    void* const at =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    madvise(at, bytes, MADV_HUGEPAGE);  // better, not needed
    return static_cast<T*>(at);
  }

  void deallocate(T* at, std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes < large)
      ::operator delete(at);
    else
      munmap(at, bytes);
  }

  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }

  friend bool operator==(const huge_page_allocator&, const huge_page_allocator&) { return true; }
};

/// resize() leaves new values undefined.
template <class T>
using huge_vector = std::vector<T, huge_page_allocator<T>>;

}  // namespace grosr::graphs
