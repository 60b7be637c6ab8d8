// Pinned host memory: pages of this process that are registered with CUDA. cudaHostAlloc() takes a
// millisecond or more for the smallest piece, and for large ones three times as long as
// registering, because it does not use large pages.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "simt/context_cuda.hpp"

namespace grosr::simt::cuda_backend {
namespace {

constexpr std::size_t large_page = std::size_t{2} << 20;
// What registering touches counts as the process's own, and it may be killed for it. More than this
// is asked of the driver, which says no.
constexpr std::size_t most_registered = std::size_t{64} << 20;

struct mapping {
  void* at;
  std::size_t bytes;
};

struct mappings {
  std::mutex mutex;
  std::unordered_map<void*, mapping> by_pointer;  // that the user has
};

// Never destroyed: at exit buffers may be released after it.
mappings& all() {
  static auto& m = *new mappings;
  return m;
}

/// Null: there is none.
void* map_and_register(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t unit = bytes < large_page ? page : large_page;
  const std::size_t whole = (bytes + unit - 1) / unit * unit;
  const std::size_t mapped = whole + unit - page;
  void* const at =
      ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  auto* const p =
      reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(at) + unit - 1) / unit * unit);
  if (unit == large_page) ::madvise(p, whole, MADV_HUGEPAGE);
  // Else the first to write after a fork gets other pages, and that may be the parent.
  ::madvise(p, whole, MADV_DONTFORK);
  try {
    std::lock_guard lock(all().mutex);
    all().by_pointer.insert_or_assign(p, mapping{at, mapped});
  } catch (...) {
    ::munmap(at, mapped);
    throw;
  }
  if (cudaHostRegister(p, whole, cudaHostRegisterMapped | cudaHostRegisterPortable) == cudaSuccess)
    return p;
  cudaGetLastError();
  std::lock_guard lock(all().mutex);
  all().by_pointer.erase(p);
  ::munmap(at, mapped);
  return nullptr;
}

}  // namespace

cudaError_t allocate_pinned(void** p, std::size_t bytes) {
  if (bytes <= most_registered && (*p = map_and_register(bytes)) != nullptr) return cudaSuccess;
  const cudaError_t e = cudaHostAlloc(p, bytes, cudaHostAllocMapped | cudaHostAllocPortable);
  if (e == cudaSuccess) std::memset(*p, 0, bytes);
  return e;
}

void release_pinned(void* p) {
  mapping m{};
  {
    std::lock_guard lock(all().mutex);
    if (const auto found = all().by_pointer.extract(p)) m = found.mapped();
  }
  if (m.at == nullptr) {
    cudaFreeHost(p);
    return;
  }
  // Else the driver still has them: other pages there could not be registered.
  if (cudaHostUnregister(p) == cudaSuccess) ::munmap(m.at, m.bytes);
}

}  // namespace grosr::simt::cuda_backend
