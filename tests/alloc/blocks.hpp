// What tests of the allocator share: marks in blocks, and kernels that fill and empty a heap.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "grosr/alloc/heap.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"
#include "support/scramble.hpp"

namespace grosr::alloc {

/// The caller's number in its grid.
GROSR_DEVICE inline std::uint32_t self() {
  return simt::block_id() * simt::block_size() + simt::thread_id();
}

GROSR_DEVICE inline void add(std::uint32_t* counter, std::uint32_t n = 1) {
  simt::atomic_ref<std::uint32_t>(*counter).fetch_add(n, simt::relaxed);
}

GROSR_DEVICE inline unsigned char mark_at(std::uint32_t id, std::size_t i) {
  const std::uint32_t word = (id + static_cast<std::uint32_t>(i / 4)) * 2654435769u;
  return static_cast<unsigned char>(word >> i % 4 * 8);
}

/// Writes the mark of `id` over the first `bytes` bytes of a block.
GROSR_DEVICE inline void stamp(void* p, std::size_t bytes, std::uint32_t id) {
  std::size_t i = 0;
  for (; i + 4 <= bytes; i += 4)
    static_cast<std::uint32_t*>(p)[i / 4] = (id + static_cast<std::uint32_t>(i / 4)) * 2654435769u;
  for (; i < bytes; ++i) static_cast<unsigned char*>(p)[i] = mark_at(id, i);
}

/// Whether it is still there.
GROSR_DEVICE inline bool stamped(const void* p, std::size_t bytes, std::uint32_t id) {
  for (std::size_t i = 0; i + 4 <= bytes; i += 4)
    if (static_cast<const std::uint32_t*>(p)[i / 4] !=
        (id + static_cast<std::uint32_t>(i / 4)) * 2654435769u)
      return false;
  for (std::size_t i = bytes / 4 * 4; i < bytes; ++i)
    if (static_cast<const unsigned char*>(p)[i] != mark_at(id, i)) return false;
  return true;
}

/// A size from 1 to 2^octaves: each octave is as likely as any other.
GROSR_DEVICE inline std::uint32_t some_size(std::uint32_t random, std::uint32_t octaves) {
  const std::uint32_t octave = random % octaves;
  return (1u << octave) + (random >> 8) % (1u << octave);
}

/// Each lane allocates until there is no memory, or has `each` blocks.
struct fill_kernel {
  heap_ref heap;
  std::size_t bytes;
  std::uint32_t each;
  void** blocks;
  std::uint32_t* count;
  std::uint32_t most;

  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < each; ++i) {
      void* p = heap.allocate(bytes);
      if (p == nullptr) return;
      const std::uint32_t at = simt::atomic_ref<std::uint32_t>(*count).fetch_add(1, simt::relaxed);
      if (at < most) blocks[at] = p;
    }
  }
};

struct free_kernel {
  heap_ref heap;
  void* const* blocks;
  std::uint32_t count;

  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = self(); i < count; i += simt::grid_size() * simt::block_size())
      heap.deallocate(blocks[i]);
  }
};

/// Blocks that kernels got from a heap and that nobody has freed yet.
class hoard {
 public:
  static constexpr std::uint32_t no_limit = ~0u;

  explicit hoard(const heap& h) : heap_(h) {}

  /// Lanes allocate until each was told that there is no memory, or has `each`; how many they got.
  std::uint32_t fill(simt::shape grid, std::size_t bytes, std::uint32_t each = no_limit) {
    const auto most = static_cast<std::uint32_t>(heap_.bytes() / unit);
    const device d = heap_.where();
    simt::buffer<void*> blocks(d, simt::space::device, most);
    simt::buffer<std::uint32_t> count(d, simt::space::device, 1);
    simt::run(d, grid, fill_kernel{heap_.ref(), bytes, each, blocks.data(), count.data(), most});
    std::uint32_t n = 0;
    count.copy_to({&n, 1});
    EXPECT_LE(n, most);
    const std::size_t before = blocks_.size();
    blocks_.resize(before + std::min(n, most));
    blocks.copy_to(std::span(blocks_).subspan(before));
    expect_apart(bytes, before);
    return n;
  }

  /// Frees the first `n`, all if there are fewer.
  void free(simt::shape grid, std::size_t n = ~std::size_t{0}) {
    n = std::min(n, blocks_.size());
    if (n == 0) return;
    simt::buffer<void*> blocks(heap_.where(), simt::space::device, n);
    blocks.copy_from(std::span(blocks_).first(n));
    simt::run(heap_.where(), grid,
              free_kernel{heap_.ref(), blocks.data(), static_cast<std::uint32_t>(n)});
    blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(n));
  }

  void shuffle(std::uint32_t seed) {
    std::shuffle(blocks_.begin(), blocks_.end(), std::mt19937(seed));
  }

  std::size_t size() const { return blocks_.size(); }
  void* operator[](std::size_t i) const { return blocks_[i]; }

 private:
  // Blocks of `bytes` from number `first` on lie beside each other, not over.
  void expect_apart(std::size_t bytes, std::size_t first) const {
    std::vector<std::uintptr_t> at;
    for (std::size_t i = first; i < blocks_.size(); ++i)
      at.push_back(reinterpret_cast<std::uintptr_t>(blocks_[i]));
    std::sort(at.begin(), at.end());
    for (std::size_t i = 1; i < at.size(); ++i)
      ASSERT_GE(at[i] - at[i - 1], bytes) << "two blocks overlap";
  }

  const heap& heap_;
  std::vector<void*> blocks_;
};

/// How many blocks of `bytes` a heap has room for.
inline std::uint32_t capacity(const heap& h, std::size_t bytes) {
  const std::size_t slabs = h.bytes() / slab_bytes;
  return static_cast<std::uint32_t>(bytes <= slab_bytes
                                        ? slabs * slots_of(class_of(bytes))
                                        : slabs / ((bytes + slab_bytes - 1) / slab_bytes));
}

}  // namespace grosr::alloc
