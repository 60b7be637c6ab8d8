#include "grosr/simt/buffer.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "simt/backend.hpp"
#include "simt/host_pinned.hpp"

namespace grosr::simt {
namespace {

constexpr std::size_t alignment = 256;
constexpr std::size_t large = std::size_t{1} << 20;  // mapped, so that pages come when touched

// Host memory keeps its length in the `alignment` bytes before it.
struct header {
  std::size_t mapped;  // bytes; 0: from the heap
};

void* allocate_on_host(space s, std::size_t bytes) {
  const std::size_t total = host_backend::memory();
  if (bytes <= total) {
    if (s == space::pinned)
      if (void* const pinned = host::allocate_pinned(bytes)) return pinned;
    void* base = nullptr;
    if (bytes >= large) {
      base = mmap(nullptr, bytes + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                  -1, 0);
      if (base == MAP_FAILED) base = nullptr;
    } else if (posix_memalign(&base, alignment, bytes + alignment) == 0) {
      std::memset(base, 0, bytes + alignment);
    } else {
      base = nullptr;
    }
    if (base != nullptr) {
      static_cast<header*>(base)->mapped = bytes >= large ? bytes + alignment : 0;
      return static_cast<char*>(base) + alignment;
    }
  }
  throw error(
      errc::out_of_memory,
      fmt::format("{} of {} memory asked for on the host, which has {} ({} free); ask for less",
                  in_units(bytes), s == space::pinned ? "pinned" : "device", in_units(total),
                  in_units(host_backend::properties().memory_free)));
}

void free_on_host(void* p) {
  if (host::is_pinned(p)) return host::free_pinned(p);
  void* base = static_cast<char*>(p) - alignment;
  if (const std::size_t mapped = static_cast<header*>(base)->mapped; mapped != 0) {
    munmap(base, mapped);
  } else {
    std::free(base);
  }
}

}  // namespace

std::string in_units(std::size_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.2f} {}", value, units[unit]);
}

void* allocate_bytes(device d, space s, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  return d.is_cuda() ? cuda_backend::allocate(d, s, bytes) : allocate_on_host(s, bytes);
}

void free_bytes(device d, space s, void* p) noexcept {
  if (p == nullptr) return;
  if (d.is_cuda()) {
    cuda_backend::release(d, s, p);
  } else {
    free_on_host(p);
  }
}

void copy_bytes(device d, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  if (d.is_cuda()) {
    cuda_backend::copy(d, to, from, bytes);
  } else {
#if defined(__SANITIZE_THREAD__)
    // As a copy engine does it: lanes may be writing the same words. memmove is no race to the
    // processor, but it is one to ThreadSanitizer.
    if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from) | bytes) %
            sizeof(std::uint32_t) ==
        0) {
      auto* target = static_cast<std::uint32_t*>(to);
      auto* source = static_cast<std::uint32_t*>(const_cast<void*>(from));
      for (std::size_t i = 0; i < bytes / sizeof(std::uint32_t); ++i)
        std::atomic_ref(target[i]).store(std::atomic_ref(source[i]).load(std::memory_order_relaxed),
                                         std::memory_order_relaxed);
      return;
    }
#endif
    std::memmove(to, from, bytes);
  }
}

namespace detail {
void refuse_index() {
  throw error(errc::misuse,
              "buffer: operator[] of device memory, which the host does not reach on a GPU; use "
              "copy_from() and copy_to(), or make the buffer in space::pinned");
}

void check_copy(std::size_t asked, std::size_t present) {
  if (asked > present) {
    throw error(errc::invalid_option,
                fmt::format("a copy of {} objects to or from a buffer of {}; copy "
                            "at most as many as it has",
                            asked, present));
  }
}
}  // namespace detail

}  // namespace grosr::simt
