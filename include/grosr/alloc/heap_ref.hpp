// What device code gets memory from.
//
//   struct push {
//     grosr::heap_ref heap;
//     node** list;
//     GROSR_DEVICE void operator()() const {
//       auto* n = heap.make<node>();
//       if (n == nullptr) return;  // no memory
//       ...
//     }
//   };
//
// It does not clear memory, move blocks, or collect garbage.
#pragma once

#include <new>
#include <type_traits>
#include <utility>

#include "grosr/alloc/detail/group.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr {

/// The threads that get one block together in heap_ref::allocate_group.
enum class group : std::uint8_t { warp, block };

/// The device's view of a heap: `heap_ref`, or `checked_heap_ref` of a checked heap. Passed to
/// kernels by value. Every member may be called by any lane of any kernel, also after lanes
/// diverged, and by host threads where the heap is on `host:N`, unless it says otherwise. Blocks
/// may be freed by other threads, blocks and kernels than got them. Made of nothing it has no
/// memory: null is got, and frees are ignored.
template <bool Checked>
class basic_heap_ref {
 public:
  basic_heap_ref() = default;
  GROSR_DEVICE explicit basic_heap_ref(const alloc::heap_view& v) : v_(v) {}

  /// A block of at least `bytes` bytes, not cleared. `alignment` is a power of two up to 65536.
  /// More than 65,536 bytes need free slabs of 64 KiB side by side. Null when there is no memory,
  /// which is counted; for another alignment, counted apart; for 0 bytes, not counted. Null or a
  /// block beside a free of the last memory that has not returned. Null also when 64 looks through
  /// the heap found none, and others got or freed memory during each. Lanes that call together and
  /// need blocks of like size are served together.
  GROSR_DEVICE void* allocate(std::size_t bytes, std::size_t alignment = alloc::unit) const {
    return get(bytes, alignment);
  }

  /// Frees what allocate() returned; null is ignored. The block may be handed out again at once.
  /// A pointer to no block, or to a free one, is counted, and nothing is done.
  GROSR_DEVICE void deallocate(void* p) const {
    if (p != nullptr) put(p);
  }

  /// The same for callers that know how much they asked for.
  GROSR_DEVICE void deallocate(void* p, std::size_t) const { deallocate(p); }

  /// A new T(args...), whose constructor device code can call; null when there is no memory.
  template <class T, class... Arguments>
  requires(!std::is_array_v<T>)  // for arrays: allocate(count * sizeof(element))
      GROSR_DEVICE T* make(Arguments&&... arguments) const {
    void* p = get(sizeof(T), alignof(T) < alloc::unit ? alloc::unit : alignof(T));
    return p == nullptr ? nullptr : ::new (p) T(std::forward<Arguments>(arguments)...);
  }

  /// Ends and frees what make() returned; null is ignored.
  template <class T>
  GROSR_DEVICE void destroy(T* p) const {
    if (p == nullptr) return;
    p->~T();
    put(p);
  }

  /// A block of at least `bytes` bytes with the content of `p`, as far as it fits: `p` itself when
  /// its block is of the right size, else a new one aligned to 16, and `p` is freed. Null, with `p`
  /// untouched, when there is no memory. Null `p`: allocate(). 0 bytes: deallocate(), and null. The
  /// calling lane copies alone.
  GROSR_DEVICE void* reallocate(void* p, std::size_t bytes) const {
    if (p == nullptr) return allocate(bytes);
    std::size_t has = bytes != 0 ? usable(p) : 0;
    if (has == 0) {
      put(p);  // what is no block is counted there
      return nullptr;
    }
    if constexpr (!Checked) {
      // A checked block always moves, so that who holds on to the old one is found.
      if (has > alloc::slab_bytes ? runs_of(bytes) == runs_of(has)
                                  : alloc::class_of(bytes) == alloc::class_of(has))
        return p;
    }
    void* to = allocate(bytes);
    if (to == nullptr) return nullptr;
    copy(to, p, bytes < has ? bytes : has);
    put(p);
    return to;
  }

  /// After an allocate() for which there was no memory: waits up to 20 us for memory that others
  /// can take: the first free slot of a full slab, many slots of one, or a whole slab. False when
  /// that did not come, and not since it was first waited for, which is `limit_ns` ago.
  GROSR_DEVICE bool wait_for_free(std::uint64_t limit_ns) const {
    if (v_.count == 0) return false;
    constexpr std::uint64_t nap_ns = 20'000;
    alloc::shared_words& w = *v_.words;
    simt::atomic_ref<std::uint32_t> epoch(w.epoch), seen(w.epoch_seen);
    simt::atomic_ref<std::uint64_t> seen_at(w.seen_at);
    std::uint32_t before = epoch.load(simt::relaxed);
    std::uint64_t now = simt::clock_ns(), since = seen_at.load(simt::relaxed);
    if (since == 0 || seen.exchange(before, simt::relaxed) != before) {
      seen_at.store(now, simt::relaxed);
      since = now;
    }
    bool freed = simt::wait_until([&] { return epoch.load(simt::relaxed) != before; }, now + nap_ns,
                                  nullptr, "memory to be freed") == simt::wait_result::ready;
    return freed || now < since || now - since < limit_ns;
  }

  /// One block for all threads of the warp or block, each of which must call it, with the same
  /// arguments; all get the same pointer, or null. Freed by one of them, after the others have met
  /// it (sync_warp, sync_block). In a task only of the task's own width, or narrower.
  template <group G>
  GROSR_DEVICE void* allocate_group(std::size_t bytes, std::size_t alignment = alloc::unit) const {
    if constexpr (G == group::warp) {
      std::uint64_t p = 0;
      if (simt::lane_id() == 0) p = reinterpret_cast<std::uint64_t>(allocate(bytes, alignment));
      p = simt::shuffle(simt::full_mask, p, 0);
      simt::sync_warp();
      return reinterpret_cast<void*>(p);
    } else {
      struct answer {
        void* p;
      };
      answer& a = simt::block_shared<answer>();
      simt::sync_block();  // the last answer was read by all
      if (simt::thread_id() == 0) a.p = allocate(bytes, alignment);
      simt::sync_block();
      return a.p;
    }
  }

  /// Bytes that the block of `p` has room for, at least what was asked for; 0 if it is no block. In
  /// a checked heap just what was asked for.
  GROSR_DEVICE std::size_t usable(void* p) const {
    alloc::location at = alloc::locate(v_, p, alloc::state_at(v_, p));
    std::size_t has = alloc::is_taken(v_, at) ? alloc::slot_size(v_, at) : 0;
    if constexpr (Checked)
      return has == 0 ? 0 : alloc::checked::bytes_of(p, has);
    else
      return has;
  }

  /// Whether `p` points into the heap's memory.
  GROSR_DEVICE bool owns(const void* p) const { return alloc::offset_of(v_, p) < size(); }

  /// Bytes that the heap manages.
  GROSR_DEVICE std::size_t size() const { return std::size_t{v_.count} * alloc::slab_bytes; }

  GROSR_DEVICE const alloc::heap_view& view() const { return v_; }

 private:
  GROSR_DEVICE static std::uint64_t runs_of(std::size_t bytes) {
    return bytes / alloc::slab_bytes + (bytes % alloc::slab_bytes != 0);  // cannot overflow
  }

  GROSR_DEVICE void* get(std::size_t bytes, std::size_t alignment) const {
    if (bytes == 0 || v_.count == 0) return nullptr;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > alloc::slab_bytes) {
      alloc::fault_count(v_.faults->bad_alignment).fetch_add(1, simt::relaxed);
      return nullptr;
    }
    std::size_t asked = bytes;
    if (Checked && bytes <= size()) bytes += alloc::checked::extra_bytes;
    std::uint32_t c = alloc::aligned_class_of(bytes, alignment);
    void* p = nullptr;
    if (c == alloc::run_class) {
      p = get_run(alloc::heap_view(v_), runs_of(bytes));
    } else if (simt::is_whole_warp()) {
      p = alloc::get_slots<true>(v_, c, simt::full_mask, simt::match_any(simt::full_mask, c));
      simt::sync_warp();  // what the leaders acquired, all have
    } else {
      p = alloc::get_slots_of_some(alloc::heap_view(v_), c);
    }
    if constexpr (Checked) {
      std::size_t has =
          c == alloc::run_class ? runs_of(bytes) * alloc::slab_bytes : alloc::slot_bytes(c);
      if (p != nullptr) alloc::checked::mark(p, asked, has, v_.owner);
    }
    return p;
  }

  GROSR_DEVICE GROSR_NOINLINE static void* get_run(const alloc::heap_view& v,
                                                   std::uint64_t length) {
    std::uint32_t slab = alloc::runs(v).take(length);
    if (slab != alloc::runs::none) return v.address(slab, 0);
    alloc::fault_count(v.faults->failures[alloc::run_class]).fetch_add(1, simt::relaxed);
    return nullptr;
  }

  GROSR_DEVICE void put(void* p) const {
    std::uint64_t state = alloc::state_at(v_, p);
    if constexpr (Checked) {
      if (v_.count == 0) return;
      if (!alloc::may_free(alloc::heap_view(v_), p, alloc::locate(v_, p, state))) return;
    }
    if (simt::is_whole_warp()) {
      // R1: what was written to the block; pairs with A1 and A3 in slab.hpp.
      simt::sync_warp(simt::full_mask);
      simt::fence(simt::release);
      alloc::location at = alloc::locate(v_, p, state);
      if (simt::all(simt::full_mask, at.kind < alloc::run_class)) {
        alloc::free_slots(v_, at, simt::full_mask);
        return simt::sync_warp();
      }
    }
    alloc::free_some(alloc::heap_view(v_), p, state);
  }

  GROSR_DEVICE static void copy(void* to, const void* from, std::size_t bytes) {
    struct alignas(16) piece {
      std::uint64_t w[2];
    };
    auto* t = static_cast<piece*>(to);
    auto* f = static_cast<const piece*>(from);
    std::size_t pieces = bytes / sizeof(piece);
    for (std::size_t i = 0; i < pieces; ++i) t[i] = f[i];
    for (std::size_t i = pieces * sizeof(piece); i < bytes; ++i)
      static_cast<unsigned char*>(to)[i] = static_cast<const unsigned char*>(from)[i];
  }

  alloc::heap_view v_{};
};

using heap_ref = basic_heap_ref<false>;
using checked_heap_ref = basic_heap_ref<true>;

}  // namespace grosr