// A heap's calls from the host.
#include <string>

#include "alloc/memory.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr {
namespace {

struct allocate_kernel {
  heap_ref heap;
  std::size_t bytes, alignment;
  void** result;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() == 0) *result = heap.allocate(bytes, alignment);
  }
};

struct deallocate_kernel {
  heap_ref heap;
  void* p;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() == 0) heap.deallocate(p);
  }
};

}  // namespace

heap::memory::calls::calls(const device& d) : stream(d), result(d, simt::space::pinned, 1) {
  simt::fit<32, 1, allocate_kernel>(d, 32);
  simt::fit<32, 1, deallocate_kernel>(d, 32);
}

void heap::check_host_call() const {
  if (own().view.found != nullptr)
    throw error(errc::misuse,
                "a call from the host on a checked heap; only kernels can use one, through "
                "checked_ref(\"name\"). Make the heap without {.checked = true} for host calls");
}

void* heap::allocate(std::size_t bytes, std::size_t alignment) const {
  check_host_call();
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > alloc::slab_bytes)
    throw error(errc::invalid_option, "alignment " + std::to_string(alignment) +
                                          " asked of a heap; it must be a power of two up to " +
                                          std::to_string(alloc::slab_bytes));
  auto& [lock, stream, result] = own().calls;
  std::lock_guard guard(lock);
  simt::launch<32, 1>(stream, {1, 32}, allocate_kernel{ref(), bytes, alignment, result.data()});
  stream.wait();
  void* p = result[0];
  if (p == nullptr && bytes != 0)
    throw error(errc::out_of_memory, std::to_string(bytes) + " bytes aligned to " +
                                         std::to_string(alignment) + " asked of a heap of " +
                                         std::to_string(this->bytes()) + " on " + where().name() +
                                         ", which has no such block free; see heap::report()");
  return p;
}

void heap::deallocate(void* p) const {
  check_host_call();
  if (p == nullptr) return;
  auto& [lock, stream, result] = own().calls;
  std::lock_guard guard(lock);
  simt::launch<32, 1>(stream, {1, 32}, deallocate_kernel{ref(), p});
  stream.wait();
}

}  // namespace grosr
