#include "simt/host_pinned.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include "grosr/simt/detail/host_machine.hpp"
#include "grosr/simt/error.hpp"
#include "simt/backend.hpp"
#include "simt/host_state.hpp"

namespace grosr::simt::host {

constinit address_range pinned_range{0, 0};

namespace {

constexpr std::size_t page = 4096, most = std::size_t{256} << 30, least = std::size_t{64} << 20;

/// Not by mmap(), which a sanitizer would take for memory in use.
void* map(void* at, std::size_t bytes, int flags) {
  const long p = ::syscall(SYS_mmap, at, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  return p == -1 ? nullptr : reinterpret_cast<void*>(p);
}

class region {
 public:
  region() {
    const std::size_t memory = std::clamp(host_backend::memory(), least, most);
    for (std::size_t bytes = memory / page * page; bytes >= least; bytes /= 2) {
      bytes = bytes / page * page;
      void* const at = map(nullptr, bytes, 0);
      if (at == nullptr) continue;
      begin_ = reinterpret_cast<std::uintptr_t>(at);
      free_[0] = bytes;
      __atomic_store_n(&pinned_range.begin, begin_, __ATOMIC_RELAXED);
      __atomic_store_n(&pinned_range.bytes, bytes, __ATOMIC_RELAXED);
      return;
    }
  }

  void* allocate(std::size_t bytes) {
    const std::size_t whole = (bytes + page - 1) / page * page;
    const std::lock_guard lock(lock_);
    const auto at = std::find_if(free_.begin(), free_.end(),
                                 [&](const auto& one) { return one.second >= whole; });
    if (at == free_.end()) return nullptr;
    const auto [offset, there] = *at;
    void* const p = reinterpret_cast<void*>(begin_ + offset);
    if (::mprotect(p, whole, PROT_READ | PROT_WRITE) != 0) return nullptr;
    free_.erase(at);
    if (there > whole) free_[offset + whole] = there - whole;
    used_[offset] = whole;
#if defined(__SANITIZE_ADDRESS__)
    ASAN_POISON_MEMORY_REGION(static_cast<char*>(p) + bytes, whole - bytes);
#endif
    return p;
  }

  void free(void* p) {
    const std::lock_guard lock(lock_);
    auto at = used_.find(reinterpret_cast<std::uintptr_t>(p) - begin_);
    auto [offset, bytes] = *at;
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
#endif
    if (map(p, bytes, MAP_FIXED) == nullptr) return;  // too many mappings: it stays in use
    used_.erase(at);
    const auto after = free_.upper_bound(offset);
    if (after != free_.end() && after->first == offset + bytes) {
      bytes += after->second;
      free_.erase(after);
    }
    const auto next = free_.upper_bound(offset);
    if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset)
      std::prev(next)->second += bytes;
    else
      free_[offset] = bytes;
  }

 private:
  std::mutex lock_;
  std::uintptr_t begin_ = 0;
  std::map<std::size_t, std::size_t> free_, used_;  // bytes, by offset
};

/// Lives as long as the process: buffers may be static. By call_once: ThreadSanitizer, which this
/// file is compiled without, sees that, and not who finds a static variable ready.
region& all() {
  static std::once_flag once;
  static region* r;
  std::call_once(once, [] { r = new region; });
  return *r;
}

}  // namespace

void* allocate_pinned(std::size_t bytes) { return all().allocate(bytes); }
void free_pinned(void* p) { all().free(p); }

void check_modifies(const void* object, site where) {
  if (self == nullptr) return;
  const position& at = current();
  throw error(errc::misuse,
              fmt::format("block {} warp {} lane {}: an atomic read-modify-write of pinned host "
                          "memory ({}) at {}:{}; on a GPU it is not atomic against the CPU: count "
                          "in device memory, and store or copy the result",
                          at.block, at.warp, at.lane, object, where.file, where.line));
}

}  // namespace grosr::simt::host
