// A heap as a memory resource for containers of the CUDA C++ ecosystem (cuda::mr, Thrust, RMM,
// cuCollections): they allocate from the host, device code frees and reallocates as it likes.
//
//   grosr::heap_resource resource{heap};
//   cuda::mr::resource_ref<cuda::mr::device_accessible> any = resource;
//
// Before CCCL 3.1 (CUDA 13.0 and earlier) cuda::mr needs
// LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE to be defined before any include. What takes a
// stream is there in files that nvcc compiles.
#pragma once

#include "grosr/alloc/heap.hpp"

#if defined(__CUDACC__)
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#endif

namespace grosr {

/// Refers to a heap, which must live. Both spellings of the interface, CCCL 2's and CCCL 3's; what
/// has a stream is done when the call returns. allocate throws error(out_of_memory). Thread-safe.
/// Each call costs a small kernel: for buffers, not for nodes.
class heap_resource {
 public:
  static constexpr std::size_t default_alignment = 256;

  /// Throws error(misuse) for a checked heap.
  explicit heap_resource(const heap& h) : heap_(&h) { h.check_host_call(); }
  explicit heap_resource(const heap&&) = delete;  // must live

  void* allocate(std::size_t bytes, std::size_t alignment = default_alignment) const {
    return heap_->allocate(bytes, alignment);
  }
  void deallocate(void* p, std::size_t = 0, std::size_t = default_alignment) const noexcept {
    try {
      heap_->deallocate(p);
    } catch (...) {  // the device is lost, and its memory with it
    }
  }
  void* allocate_sync(std::size_t bytes, std::size_t alignment = default_alignment) const {
    return allocate(bytes, alignment);
  }
  void deallocate_sync(void* p, std::size_t bytes = 0,
                       std::size_t alignment = default_alignment) const noexcept {
    deallocate(p, bytes, alignment);
  }

#if defined(__CUDACC__)
  void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t alignment) const {
    return allocate(bytes, alignment);
  }
  void deallocate(cuda::stream_ref s, void* p, std::size_t bytes,
                  std::size_t alignment) const noexcept {
    deallocate_async(p, bytes, alignment, s);
  }
  void* allocate_async(std::size_t bytes, std::size_t alignment, cuda::stream_ref) const {
    return allocate(bytes, alignment);
  }
  void deallocate_async(void* p, std::size_t bytes, std::size_t alignment,
                        cuda::stream_ref s) const noexcept {
    cudaStreamSynchronize(s.get());
    deallocate(p, bytes, alignment);
  }
#if defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE) || CCCL_MAJOR_VERSION > 3 || \
    (CCCL_MAJOR_VERSION == 3 && CCCL_MINOR_VERSION >= 1)
  friend void get_property(const heap_resource&, cuda::mr::device_accessible) noexcept {}
#endif
#endif

  friend bool operator==(const heap_resource& a, const heap_resource& b) {
    return a.heap_ == b.heap_;
  }
  friend bool operator!=(const heap_resource& a, const heap_resource& b) { return !(a == b); }

 private:
  const heap* heap_;
};

}  // namespace grosr
