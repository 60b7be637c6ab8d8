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
#include <utility>

#include "grosr/alloc/runs.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr {

/// Who gets one block together in heap_ref::allocate_group.
enum class group : std::uint8_t { warp, block };

/// The device's view of a heap; passed to kernels by value. Every member may be called by any lane
/// of any kernel, also after lanes diverged, and by host threads where the heap is on `host:N`,
/// unless it says otherwise. Blocks may be freed by other threads, blocks and kernels than got them.
class heap_ref {
 public:
  heap_ref() = default;
  explicit heap_ref(const alloc::heap_view& v) : v_(v) {}

  /// A block of at least `bytes` bytes, not cleared; null when there is no memory, which is
  /// counted, and for 0 bytes, which is not. `alignment` is a power of two up to 65536, else the
  /// result is null, counted apart. Lanes that call together and need blocks of like size are
  /// served together.
  GROSR_DEVICE void* allocate(std::size_t bytes, std::size_t alignment = alloc::unit) const {
    return get(bytes, alignment, false);
  }

  /// Frees what allocate() returned; null is ignored. The block may be handed out again at once.
  /// What is no block, or is free, is counted and left.
  GROSR_DEVICE void deallocate(void* p) const {
    if (p != nullptr) put(p);
  }

  /// The same for callers that know how much they asked for.
  GROSR_DEVICE void deallocate(void* p, std::size_t) const { deallocate(p); }

  /// A new T(args...); null when there is no memory.
  template <class T, class... Arguments>
  GROSR_DEVICE T* make(Arguments&&... arguments) const {
    void* p = get(sizeof(T), alignof(T) < alloc::unit ? alloc::unit : alignof(T), true);
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
  /// its block is of the right size, else a new one, and `p` is freed. Null, with `p` untouched, when
  /// there is no memory. Null `p`: allocate(). 0 bytes: deallocate(), and null.
  GROSR_DEVICE void* reallocate(void* p, std::size_t bytes) const {
    if (p == nullptr) return allocate(bytes);
    if (bytes == 0) {
      deallocate(p);
      return nullptr;
    }
    std::size_t has = usable(p);
    if (has == 0) {
      put(p);  // counts it
      return nullptr;
    }
    if (bytes <= has && alloc::class_of(bytes) == alloc::class_of(has) && has <= alloc::slab_bytes)
      return p;
    if (has > alloc::slab_bytes && bytes > alloc::slab_bytes && runs_of(bytes) == runs_of(has))
      return p;
    void* to = allocate(bytes);
    if (to == nullptr) return nullptr;
    copy(to, p, bytes < has ? bytes : has);
    put(p);
    return to;
  }

  /// One block for all threads of the warp or block, each of which must call it, with the same
  /// arguments; all get the same pointer. Freed by one of them.
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

  /// Bytes that the block of `p` has room for, at least what was asked for; 0 if it is no block.
  GROSR_DEVICE std::size_t usable(const void* p) const {
    place at = find(p);
    if (at.kind == alloc::run_class) return std::size_t{alloc::runs(v_).length(at.slab)} * alloc::slab_bytes;
    return at.kind < alloc::slot_classes ? alloc::slot_bytes(at.kind) : 0;
  }

  /// Whether `p` points into the heap's memory.
  GROSR_DEVICE bool owns(const void* p) const { return offset_of(p) < size(); }

  /// Bytes that the heap manages.
  GROSR_DEVICE std::size_t size() const { return std::size_t{v_.count} * alloc::slab_bytes; }

  const alloc::heap_view& view() const { return v_; }

 private:
  static constexpr std::uint32_t no_block = alloc::classes;
  using count = simt::atomic_ref<std::uint64_t>;

  struct place {
    std::uint32_t slab, kind, slot;  // kind: a class, or no_block
  };

  GROSR_DEVICE std::size_t offset_of(const void* p) const {
    return static_cast<std::size_t>(static_cast<const unsigned char*>(p) - v_.slabs);
  }

  GROSR_DEVICE place find(const void* p) const {
    std::size_t offset = offset_of(p);
    if (offset >= size()) return {0, no_block, 0};
    auto slab = static_cast<std::uint32_t>(offset / alloc::slab_bytes);
    std::uint32_t inside = static_cast<std::uint32_t>(offset) % alloc::slab_bytes;
    std::uint64_t s = v_.state_of(slab).load(simt::relaxed);
    if (!alloc::state::is_alive(s)) return {slab, no_block, 0};
    std::uint32_t c = alloc::state::class_in(s);
    if (c == alloc::run_class) return {slab, inside == 0 ? c : no_block, 0};
    std::uint32_t bytes = alloc::slot_bytes(c), slot = inside / bytes;
    if (slot * bytes != inside || slot >= alloc::slots_of(c)) return {slab, no_block, 0};
    return {slab, c, slot};
  }

  GROSR_DEVICE static std::uint64_t runs_of(std::size_t bytes) {
    return (std::uint64_t{bytes} + alloc::slab_bytes - 1) / alloc::slab_bytes;
  }

  GROSR_DEVICE void* get(std::size_t bytes, std::size_t alignment, bool uniform) const {
    if (bytes == 0) return nullptr;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > alloc::slab_bytes) {
      count(v_.faults->bad_alignment).fetch_add(1, simt::relaxed);
      return nullptr;
    }
    std::uint32_t c = alloc::aligned_class_of(bytes, alignment);
    if (c == alloc::run_class) return get_run(bytes);
    std::uint32_t mask = simt::active_mask_by(c, uniform);
    void* p = get_slots(c, mask);
    meet(mask);  // what the leaders acquired, all have
    return p;
  }

  GROSR_DEVICE void* get_run(std::size_t bytes) const {
    std::uint32_t slab = alloc::runs(v_).take(runs_of(bytes));
    if (slab != alloc::runs::none) return v_.address(slab, 0);
    count(v_.faults->failures[alloc::run_class]).fetch_add(1, simt::relaxed);
    return nullptr;
  }

  // The lanes of `pending` each get a slot of class c.
  GROSR_DEVICE void* get_slots(std::uint32_t c, std::uint32_t pending) const {
    alloc::supply from(v_, c);
    void* mine = nullptr;
    std::uint32_t slots = alloc::slots_of(c);
    if (simt::popcount(pending) >= slots && get_slabs(from, c, slots, pending, mine)) return mine;
    for (;;) {
      unsigned leader = simt::lowest_bit(pending), rank = simt::rank_in(pending, simt::lane_id());
      alloc::promise p;
      if (simt::lane_id() == leader) p = from.take(simt::popcount(pending));
      p.slab = simt::shuffle(pending, p.slab, leader);
      std::uint64_t both = simt::shuffle(
          pending, std::uint64_t{p.cursor} << 32 | p.count, leader);
      p.cursor = static_cast<std::uint32_t>(both >> 32);
      p.count = static_cast<std::uint32_t>(both);
      if (p.count == 0) {
        if (simt::lane_id() == leader)
          count(v_.faults->failures[c]).fetch_add(simt::popcount(pending), simt::relaxed);
        return nullptr;
      }
      std::uint32_t slot = alloc::slabs(v_).find_slots(p, slots, pending, rank);
      if (rank < p.count) return v_.address(p.slab, slot * alloc::slot_bytes(c));
      pending &= ~simt::lowest_bits(pending, p.count);
    }
  }

  // Whole slabs for a group that fills at least one. False when lanes are left, in `pending`.
  GROSR_DEVICE bool get_slabs(const alloc::supply& from, std::uint32_t c, std::uint32_t slots,
                              std::uint32_t& pending, void*& mine) const {
    unsigned leader = simt::lowest_bit(pending), rank = simt::rank_in(pending, simt::lane_id());
    alloc::slab_pick got;
    if (simt::lane_id() == leader) got = from.take_slabs(simt::popcount(pending) / slots);
    got.first = simt::shuffle(pending, got.first, leader);
    got.mask = simt::shuffle(pending, got.mask, leader);
    std::uint32_t served = simt::popcount64(got.mask) * slots, which = rank / slots;
    if (rank < served) {
      std::uint32_t slab = got.first + simt::nth_bit64(got.mask, which), slot = rank - which * slots;
      if (slot == 0) {
        v_.bits_of(slab, 0).store(slots == 32 ? ~0u : (1u << slots) - 1, simt::relaxed);
        alloc::slabs(v_).give_birth(slab, c, slots, false);
      }
      mine = v_.address(slab, slot * alloc::slot_bytes(c));
    }
    // Nobody has a pointer into a slab that is not born.
    simt::sync_warp(pending);
    bool done = rank < served;
    std::uint32_t left = pending & ~simt::lowest_bits(pending, served);
    if (done) return true;
    pending = left;
    return false;
  }

  GROSR_DEVICE void put(void* p) const {
    place at = find(p);
    if (at.kind >= alloc::run_class) return put_other(at);
    std::uint32_t mask = simt::active_mask();
    std::uint32_t word = at.slab * alloc::words_a_slab + at.slot / 32, bit = 1u << (at.slot % 32);
    // R1: what was written to the block; pairs with A1 in find_slots() and A3 in kill().
    simt::sync_warp(mask);
    simt::fence(simt::release);
    std::uint32_t same = simt::match_any(mask, word);
    std::uint32_t bits = simt::popcount(same) == 1 ? bit : simt::reduce_or(same, bit);
    if (simt::lane_id() == simt::lowest_bit(same)) {
      std::uint32_t before = v_.bits_of(at.slab, at.slot / 32).fetch_and(~bits, simt::relaxed);
      std::uint32_t freed = simt::popcount(before & bits), asked = simt::popcount(same);
      if (freed != asked)
        count(v_.faults->double_frees).fetch_add(asked - freed, simt::relaxed);
      // After the bits: what is counted free can be found.
      if (freed != 0) alloc::slabs(v_).take_back(at.slab, freed);
    }
    if (mask == simt::full_mask) simt::sync_warp();
  }

  GROSR_DEVICE static void meet(std::uint32_t mask) {
    if (mask == simt::full_mask)
      simt::sync_warp();
    else
      simt::sync_warp(mask);
  }

  GROSR_DEVICE GROSR_NOINLINE void put_other(place at) const {
    simt::fence(simt::release);  // R1
    if (at.kind == alloc::run_class && alloc::runs(v_).give_back(at.slab)) return;
    count(v_.faults->foreign).fetch_add(1, simt::relaxed);
  }

  GROSR_DEVICE static void copy(void* to, const void* from, std::size_t bytes) {
    struct alignas(16) piece {
      std::uint64_t w[2];
    };
    auto* t = static_cast<piece*>(to);
    auto* f = static_cast<const piece*>(from);
    for (std::size_t i = 0; i < (bytes + 15) / 16; ++i) t[i] = f[i];  // blocks are whole pieces
  }

  alloc::heap_view v_{};
};

}  // namespace grosr
