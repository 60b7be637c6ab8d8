// Where a pointer lies: in which block, and in a checked heap whether that may be freed.
#pragma once

#include "grosr/alloc/detail/heap_view.hpp"

namespace grosr::alloc {

// What a pointer may point to besides blocks, which are told by their class.
inline constexpr std::uint32_t no_block = classes;
inline constexpr std::uint32_t freed_block = classes + 1;  ///< memory that was in use, and is free

using fault_count = simt::atomic_ref<std::uint64_t>;

/// Slabs of the run that begins at `slab`.
GROSR_DEVICE inline std::uint32_t run_length(const heap_view& v, std::uint32_t slab) {
  return simt::atomic_ref<std::uint32_t>(v.run_lengths[slab]).load(simt::relaxed);
}

/// What a pointer points to.
struct location {
  std::uint32_t slab, kind, slot;  ///< kind: a class, no_block or freed_block
  std::uint64_t state;             ///< the slab's word
};

GROSR_DEVICE inline std::size_t offset_of(const heap_view& v, const void* p) {
  return static_cast<std::size_t>(static_cast<const unsigned char*>(p) - v.slabs);
}

/// The word of the slab that `p` lies in; a dead one's if in none.
GROSR_DEVICE inline std::uint64_t state_at(const heap_view& v, const void* p) {
  std::size_t slab = offset_of(v, p) / slab_bytes;
  return slab < v.count ? v.state_of(static_cast<std::uint32_t>(slab)).load(simt::relaxed) : 0;
}

/// Whether a slot of a live slab, or a run, is somebody's.
GROSR_DEVICE inline bool is_taken(const heap_view& v, const location& at) {
  if (at.kind >= slot_classes) return at.kind == run_class;
  return (v.bits_of(at.slab, at.slot / 32).load(simt::relaxed) >> (at.slot % 32) & 1) != 0;
}

/// What is at a slab that is not alive: memory that was in use and is free, or none.
GROSR_DEVICE GROSR_NOINLINE inline std::uint32_t kind_of_dead(const heap_view& v,
                                                              std::uint32_t slab, std::uint64_t s) {
  if (slab >= v.count || !v.pool().contains(slab)) return no_block;
  std::uint64_t in_run =
      simt::atomic_ref<std::uint64_t>(v.ever_in_runs()[slab / 64]).load(simt::relaxed) >>
          (slab % 64) &
      1;
  return (s & state::seen) != 0 || in_run != 0 ? freed_block : no_block;
}

/// What `p` points to, s being what state_at() said.
GROSR_DEVICE inline location locate(const heap_view& v, const void* p, std::uint64_t s) {
  std::size_t offset = offset_of(v, p);
  auto slab = static_cast<std::uint32_t>(offset / slab_bytes);
  std::uint32_t inside = static_cast<std::uint32_t>(offset) % slab_bytes;
  if (!state::is_alive(s)) [[unlikely]]
    return {slab, kind_of_dead(heap_view(v), slab, s), 0, s};
  std::uint32_t c = state::class_in(s);
  if (c == run_class) return {slab, inside == 0 ? c : no_block, 0, s};
  std::uint32_t slot = slot_at(c, inside);
  return {slab, slot < slots_of(c) ? c : no_block, slot, s};
}

/// Bytes of the block there; 0 if it is none.
GROSR_DEVICE inline std::size_t slot_size(const heap_view& v, const location& at) {
  if (at.kind == run_class) return std::size_t{run_length(v, at.slab)} * slab_bytes;
  return at.kind < slot_classes ? slot_bytes(at.kind) : 0;
}

/// Whether a block of a checked heap may be freed; what is wrong is kept. Of several who free a
/// block, one may.
GROSR_DEVICE GROSR_NOINLINE inline bool may_free(const heap_view& v, void* p, location at) {
  std::size_t has = slot_size(v, at);
  if (has == 0) {
    fault what = at.kind == freed_block ? fault::double_free : fault::foreign_free;
    checked::report(v.found, what, p, at.kind, nullptr, v.owner);
    return true;  // counted by who goes on
  }
  block_record& r = checked::record_of(p, has);
  std::uint32_t stamp = checked::live_stamp(p), found = stamp;
  bool mine =
      simt::atomic_ref<std::uint32_t>(r.stamp).compare_exchange(found, ~stamp, simt::relaxed);
  if (!is_taken(v, at) || (!mine && found == ~stamp)) {
    checked::report(v.found, fault::double_free, p, at.kind, &r, v.owner);
    fault_count(v.faults->double_frees).fetch_add(1, simt::relaxed);
    return false;
  }
  if (!mine || !checked::whole(p, r.bytes, has)) {
    fault_count(v.faults->overruns).fetch_add(1, simt::relaxed);
    checked::report(v.found, fault::written_past_end, p, at.kind, mine ? &r : nullptr, v.owner);
  }
  r.freed_by = static_cast<std::uint16_t>(v.owner);
  return true;
}

}  // namespace grosr::alloc
