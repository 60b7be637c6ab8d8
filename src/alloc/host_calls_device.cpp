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

void* heap::allocate(std::size_t bytes, std::size_t alignment) const {
  simt::buffer<void*> result(where(), simt::space::pinned, 1);
  simt::run(where(), {1, 32}, allocate_kernel{ref(), bytes, alignment, result.data()});
  if (result[0] == nullptr && bytes != 0)
    throw error(errc::out_of_memory, std::to_string(bytes) + " bytes aligned to " +
                                         std::to_string(alignment) + " asked of a heap of " +
                                         std::to_string(this->bytes()) + " on " + where().name() +
                                         ", which has no such block free; see heap::report()");
  return result[0];
}

void heap::deallocate(void* p) const {
  if (p != nullptr) simt::run(where(), {1, 32}, deallocate_kernel{ref(), p});
}

}  // namespace grosr
