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

/// The device's view of a heap: `heap_ref`, or `checked_heap_ref` of a checked heap. Passed to
/// kernels by value. Every member may be called by any lane of any kernel, also after lanes
/// diverged, and by host threads where the heap is on `host:N`, unless it says otherwise. Blocks
/// may be freed by other threads, blocks and kernels than got them.
template <bool Checked>
class basic_heap_ref {
 public:
  basic_heap_ref() = default;
  explicit basic_heap_ref(const alloc::heap_view& v) : v_(v) {}

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
  /// its block is of the right size, else a new one, and `p` is freed. Null, with `p` untouched,
  /// when there is no memory. Null `p`: allocate(). 0 bytes: deallocate(), and null.
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

  /// After an allocate() for which there was no memory: waits up to 20 us for something to be
  /// freed. False when that did not come, and nothing was freed for `limit_ns` while somebody
  /// waited.
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

  /// Bytes that the block of `p` has room for, at least what was asked for; 0 if it is no block. In
  /// a checked heap just what was asked for.
  GROSR_DEVICE std::size_t usable(void* p) const {
    place at = place_in(v_, p, state_at(v_, p));
    std::size_t has = slot_size(v_, at);
    if constexpr (Checked)
      return has == 0 ? 0 : alloc::checked::bytes_of(p, has);
    else
      return has;
  }

  /// Whether `p` points into the heap's memory.
  GROSR_DEVICE bool owns(const void* p) const { return offset_of(v_, p) < size(); }

  /// Bytes that the heap manages.
  GROSR_DEVICE std::size_t size() const { return std::size_t{v_.count} * alloc::slab_bytes; }

  GROSR_DEVICE const alloc::heap_view& view() const { return v_; }

 private:
  static constexpr std::uint32_t no_block = alloc::classes;
  using count = simt::atomic_ref<std::uint64_t>;

  struct place {
    std::uint32_t slab, kind, slot;  // kind: a class, or no_block
    std::uint64_t state;             // the slab's word
  };

  GROSR_DEVICE static std::size_t offset_of(const alloc::heap_view& v, const void* p) {
    return static_cast<std::size_t>(static_cast<const unsigned char*>(p) - v.slabs);
  }

  // The word of the slab that `p` lies in; a dead one's if in none.
  GROSR_DEVICE static std::uint64_t state_at(const alloc::heap_view& v, const void* p) {
    std::size_t slab = offset_of(v, p) / alloc::slab_bytes;
    return slab < v.count ? v.state_of(static_cast<std::uint32_t>(slab)).load(simt::relaxed) : 0;
  }

  GROSR_DEVICE static place place_in(const alloc::heap_view& v, const void* p, std::uint64_t s) {
    std::size_t offset = offset_of(v, p);
    auto slab = static_cast<std::uint32_t>(offset / alloc::slab_bytes);
    std::uint32_t inside = static_cast<std::uint32_t>(offset) % alloc::slab_bytes;
    if (!alloc::state::is_alive(s)) return {slab, no_block, 0, s};
    std::uint32_t c = alloc::state::class_in(s);
    if (c == alloc::run_class) return {slab, inside == 0 ? c : no_block, 0, s};
    std::uint32_t slot = alloc::slot_at(c, inside);
    return {slab, slot < alloc::slots_of(c) ? c : no_block, slot, s};
  }

  GROSR_DEVICE static std::size_t slot_size(const alloc::heap_view& v, const place& at) {
    if (at.kind == alloc::run_class)
      return std::size_t{alloc::runs(v).length(at.slab)} * alloc::slab_bytes;
    return at.kind < alloc::slot_classes ? alloc::slot_bytes(at.kind) : 0;
  }

  GROSR_DEVICE static std::uint64_t runs_of(std::size_t bytes) {
    return bytes / alloc::slab_bytes + (bytes % alloc::slab_bytes != 0);  // cannot overflow
  }

  GROSR_DEVICE void* get(std::size_t bytes, std::size_t alignment, bool uniform) const {
    if (bytes == 0 || v_.count == 0) return nullptr;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > alloc::slab_bytes) {
      count(v_.faults->bad_alignment).fetch_add(1, simt::relaxed);
      return nullptr;
    }
    std::size_t asked = bytes;
    if (Checked && bytes <= size()) bytes += alloc::checked::extra_bytes;
    std::uint32_t c = alloc::aligned_class_of(bytes, alignment);
    void* p = nullptr;
    if (c == alloc::run_class) {
      p = get_run(v_, runs_of(bytes));
    } else if (simt::is_whole_warp()) {
      p = get_slots(v_, c, simt::full_mask, simt::match_any(simt::full_mask, c, uniform));
      simt::sync_warp();  // what the leaders acquired, all have
    } else {
      p = get_slots_of_some(v_, c, uniform);
    }
    if constexpr (Checked) {
      std::size_t has =
          c == alloc::run_class ? runs_of(bytes) * alloc::slab_bytes : alloc::slot_bytes(c);
      if (p != nullptr) alloc::checked::mark(p, asked, has, v_.owner);
    }
    return p;
  }

  // What is called out of line takes the view by value: a pointer to it would put it on the stack
  // of every caller, and its loads before the atomics that need them.

  GROSR_DEVICE GROSR_NOINLINE static void* get_run(alloc::heap_view v, std::uint64_t length) {
    std::uint32_t slab = alloc::runs(v).take(length);
    if (slab != alloc::runs::none) return v.address(slab, 0);
    count(v.faults->failures[alloc::run_class]).fetch_add(1, simt::relaxed);
    return nullptr;
  }

  // Apart from what whole warps do, so that the masks of their collectives are constants: the
  // compiler guards others by some ten instructions each.
  GROSR_DEVICE GROSR_NOINLINE static void* get_slots_of_some(alloc::heap_view v, std::uint32_t c,
                                                             bool uniform) {
    std::uint32_t crew = simt::active_mask();
    void* p = get_slots(v, c, crew, simt::match_any(crew, c, uniform));
    simt::sync_warp(crew);
    return p;
  }

  // Lanes of `crew` each get a slot of their class c; those of one class are a group, whose lowest
  // lane leads. All stay together: collectives of smaller masks would break the warp up. Straight
  // on where the desk's slab has enough and the first word looked at has it; loops would break it
  // up too.
  GROSR_DEVICE static void* get_slots(const alloc::heap_view& v, std::uint32_t c,
                                      std::uint32_t crew, std::uint32_t group) {
    alloc::supply from(v, c);
    alloc::request r{group, 0, {}, {}};
    std::uint32_t slots = alloc::slots_of(c);
    void* mine = nullptr;
    if (simt::any(crew, simt::popcount(group) >= slots)) {
      mine = get_slabs(v, from, c, slots, crew, r.group);
      bool served = mine != nullptr;
      crew = simt::ballot(crew, !served);
      if (served) return mine;
    }
    unsigned leader = simt::lowest_bit(r.group), n = simt::popcount(r.group);
    if (simt::lane_id() == leader) {
      r.promised = from.try_take(n, r.desk);
      if (r.promised.count == n) r.found = alloc::slabs(v).find_first(r.promised, slots);
    }
    std::uint64_t both =
        std::uint64_t{r.promised.slab * alloc::words_a_slab + r.found.word} << 32 | r.found.bits;
    both = simt::shuffle(crew, both, leader);
    auto bits = static_cast<std::uint32_t>(both), at = static_cast<std::uint32_t>(both >> 32);
    bool served = simt::popcount(bits) == n;
    crew = simt::ballot(crew, !served);
    if (!served) [[unlikely]]
      return get_slots_slowly(v, c, crew, r);
    std::uint32_t slot = at % alloc::words_a_slab * 32 +
                         simt::nth_bit(bits, simt::rank_in(r.group, simt::lane_id()));
    return v.address(at / alloc::words_a_slab, slot * alloc::slot_bytes(c));
  }

  // The same, with what the leader has begun.
  GROSR_DEVICE GROSR_NOINLINE static void* get_slots_slowly(alloc::heap_view v, std::uint32_t c,
                                                            std::uint32_t crew, alloc::request r) {
    alloc::supply from(v, c);
    std::uint32_t slots = alloc::slots_of(c);
    for (;;) {
      unsigned leader = simt::lowest_bit(r.group), n = simt::popcount(r.group);
      bool leads = simt::lane_id() == leader;
      if (leads && r.promised.count == 0) r.promised = from.refill(n, r.desk);
      r.promised = alloc::from_lane(crew, r.promised, leader);
      std::uint32_t got = r.promised.count;
      if (leads && got == 0) count(v.faults->failures[c]).fetch_add(n, simt::relaxed);
      std::uint32_t slot = alloc::slabs(v).find_slots(r, slots, crew);
      bool served = simt::rank_in(r.group, simt::lane_id()) < got;
      crew = simt::ballot(crew, !served && got != 0);
      if (served) return v.address(r.promised.slab, slot * alloc::slot_bytes(c));
      if (got == 0) return nullptr;
      r.group &= ~simt::lowest_bits(r.group, got);
      r.found = {};
      r.promised = {};
      if (simt::lane_id() == simt::lowest_bit(r.group))
        r.promised = from.try_take(simt::popcount(r.group), r.desk);
    }
  }

  // Whole slabs for groups that fill at least one; lanes that got a slot of one leave their group.
  GROSR_DEVICE static void* get_slabs(const alloc::heap_view& v, const alloc::supply& from,
                                      std::uint32_t c, std::uint32_t slots, std::uint32_t crew,
                                      std::uint32_t& group) {
    unsigned leader = simt::lowest_bit(group), rank = simt::rank_in(group, simt::lane_id());
    alloc::slab_pick got;
    if (simt::lane_id() == leader && simt::popcount(group) >= slots)
      got = from.take_slabs(divide(simt::popcount(group), slots));
    got.first = simt::shuffle(crew, got.first, leader);
    got.mask = simt::shuffle(crew, got.mask, leader);
    std::uint32_t served = simt::popcount64(got.mask) * slots, which = divide(rank, slots);
    void* mine = nullptr;
    if (rank < served) {
      std::uint32_t slab = got.first + simt::nth_bit64(got.mask, which),
                    slot = rank - which * slots;
      if (slot == 0) alloc::slabs(v).give_birth_full(slab, c, slots);
      mine = v.address(slab, slot * alloc::slot_bytes(c));
    }
    group &= ~simt::lowest_bits(group, served);
    // Nobody has a pointer into a slab that is not born.
    simt::sync_warp(crew);
    return mine;
  }

  // Slots of a slab mostly are a power of two where they are few.
  GROSR_DEVICE static std::uint32_t divide(std::uint32_t n, std::uint32_t slots) {
    return (slots & (slots - 1)) == 0 ? n >> simt::lowest_bit(slots) : n / slots;
  }

  GROSR_DEVICE void put(void* p) const {
    std::uint64_t state = state_at(v_, p);
    if constexpr (Checked) {
      if (!check(v_, p, place_in(v_, p, state))) return;
    }
    if (simt::is_whole_warp()) {
      // R1: what was written to the block; pairs with A1 in find_first(), find_slots() and A3.
      simt::sync_warp(simt::full_mask);
      simt::fence(simt::release);
      place at = place_in(v_, p, state);
      if (simt::all(simt::full_mask, at.kind < alloc::run_class)) {
        put_slots(v_, at, simt::full_mask);
        return simt::sync_warp();
      }
    }
    put_some(v_, p, state);
  }

  // Frees blocks of any kind; see get_slots_of_some().
  GROSR_DEVICE GROSR_NOINLINE static void put_some(alloc::heap_view v, void* p,
                                                   std::uint64_t state) {
    std::uint32_t crew = simt::active_mask();
    simt::sync_warp(crew);
    simt::fence(simt::release);  // R1
    place at = place_in(v, p, state);
    bool in_slab = at.kind < alloc::run_class;
    crew = simt::ballot(crew, in_slab);
    if (in_slab)
      put_slots(v, at, crew);
    else if (at.kind != alloc::run_class || !alloc::runs(v).give_back(at.slab))
      if (v.count != 0) count(v.faults->foreign).fetch_add(1, simt::relaxed);
  }

  // Lanes of `crew` free a slot each.
  GROSR_DEVICE static void put_slots(const alloc::heap_view& v, place at, std::uint32_t crew) {
    std::uint32_t word = at.slab * alloc::words_a_slab + at.slot / 32;
    std::uint32_t same = simt::match_any(crew, word);
    std::uint32_t bits = bits_of_group(crew, same, at.slot % 32);
    if (simt::lane_id() == simt::lowest_bit(same)) {
      std::uint32_t freed = alloc::slabs(v).free_slots(at.slab, at.slot / 32, bits, at.state);
      std::uint32_t asked = simt::popcount(same);
      if (freed != asked) [[unlikely]]
        count(v.faults->double_frees).fetch_add(asked - freed, simt::relaxed);
    }
  }

  // The bits of the caller's group `same`, each lane of `crew` having one. Most groups free slots
  // in a row; else every lane tells all others, for a collective of one group would break the warp
  // up.
  GROSR_DEVICE static std::uint32_t bits_of_group(std::uint32_t crew, std::uint32_t same,
                                                  std::uint32_t bit) {
    std::uint32_t first = simt::shuffle(crew, bit, simt::lowest_bit(same));
    bool in_row = bit == first + simt::rank_in(same, simt::lane_id());
    if (simt::all(crew, in_row)) return simt::first_bits(simt::popcount(same)) << first;
    std::uint32_t bits = 0;
    for (std::uint32_t rest = crew; rest != 0; rest &= rest - 1) {
      std::uint32_t other = simt::shuffle(crew, bit, simt::lowest_bit(rest));
      bits |= (same >> simt::lowest_bit(rest) & 1) << other;
    }
    return bits;
  }

  // Whether the block may be freed; what is wrong is kept. Of several who free a block, one may.
  GROSR_DEVICE GROSR_NOINLINE static bool check(alloc::heap_view v, void* p, place at) {
    namespace checked = alloc::checked;
    std::size_t has = slot_size(v, at);
    if (has == 0) {
      checked::report(v.found, alloc::fault::foreign_free, p, at.kind, nullptr, v.owner);
      return true;  // counted by who goes on
    }
    alloc::block_record& r = checked::record_of(p, has);
    std::uint32_t stamp = checked::live_stamp(p), found = stamp;
    bool mine =
        simt::atomic_ref<std::uint32_t>(r.stamp).compare_exchange(found, ~stamp, simt::relaxed);
    bool live = at.kind == alloc::run_class ||
                (v.bits_of(at.slab, at.slot / 32).load(simt::relaxed) >> (at.slot % 32) & 1) != 0;
    if (!live || (!mine && found == ~stamp)) {
      checked::report(v.found, alloc::fault::double_free, p, at.kind, &r, v.owner);
      count(v.faults->double_frees).fetch_add(1, simt::relaxed);
      return false;
    }
    if (!mine || !checked::whole(p, r.bytes, has))
      checked::report(v.found, alloc::fault::written_past_end, p, at.kind, mine ? &r : nullptr,
                      v.owner);
    r.freed_by = static_cast<std::uint16_t>(v.owner);
    return true;
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
