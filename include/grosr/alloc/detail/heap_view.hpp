// What a heap consists of, in device memory. See docs/internals/memory.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grosr/alloc/detail/checked.hpp"
#include "grosr/alloc/detail/size_class.hpp"
#include "grosr/alloc/detail/slab_set.hpp"
#include "grosr/simt/atomic.hpp"

namespace grosr::alloc {

/// The word that says all about a slab. Without `alive`: free, or inside a run.
namespace state {
inline constexpr std::uint64_t count_mask = (1u << 23) - 1;
inline constexpr std::uint64_t idle = std::uint64_t{1} << 23;  ///< in the idle set, or about to be
inline constexpr unsigned class_shift = 24;
inline constexpr std::uint64_t alive = std::uint64_t{1} << 30;
inline constexpr std::uint64_t held = std::uint64_t{1} << 31;
inline constexpr unsigned cursor_shift = 32;
inline constexpr std::uint64_t seen = std::uint64_t{1} << 63;  ///< in a dead slab: it was used once

GROSR_DEVICE constexpr std::uint32_t count(std::uint64_t s) {
  return static_cast<std::uint32_t>(s & count_mask);
}
GROSR_DEVICE constexpr std::uint32_t cursor(std::uint64_t s) {
  return static_cast<std::uint32_t>(s >> cursor_shift);
}
/// Class and alive: what a slab of this class has in its word.
GROSR_DEVICE constexpr std::uint64_t of_class(std::uint32_t c) {
  return alive | std::uint64_t{c} << class_shift;
}
GROSR_DEVICE constexpr bool is_class(std::uint64_t s, std::uint32_t c) {
  return ((s ^ of_class(c)) & (alive | std::uint64_t{63} << class_shift)) == 0;
}
GROSR_DEVICE constexpr bool is_alive(std::uint64_t s) { return (s & alive) != 0; }
GROSR_DEVICE constexpr bool is_held(std::uint64_t s) { return (s & held) != 0; }
/// The class of a live slab.
GROSR_DEVICE constexpr std::uint32_t class_in(std::uint64_t s) {
  return static_cast<std::uint32_t>(s >> class_shift) & 63;
}
/// What a reservation of n slots adds.
GROSR_DEVICE constexpr std::uint64_t reservation(std::uint32_t n) {
  return std::uint64_t{n} << cursor_shift | n;
}
}  // namespace state

/// The word of an active slab: the slab that warps of one SM take slots of one class from, and its
/// lock.
namespace active_word {
inline constexpr std::uint32_t locked = 1;
inline constexpr std::uint32_t max_slabs = (1u << 24) - 2;

/// Slab + 1, or 0; then 7 bits that change with every unlocking; then the lock.
GROSR_DEVICE constexpr std::uint32_t slab_plus_one(std::uint32_t d) { return d >> 8; }
GROSR_DEVICE constexpr std::uint32_t unlocked_with(std::uint32_t before, std::uint32_t plus_one) {
  return plus_one << 8 | ((before + 2) & 0xfe);
}
}  // namespace active_word

inline constexpr unsigned max_ways = 16;
inline constexpr unsigned partial_cache_size = 16;

/// A class's failures and those that have no class. Counted when they happen, on no fast path.
struct fault_counts {
  std::uint64_t failures[classes];  ///< allocations for which there was no memory
  std::uint64_t bad_alignment;      ///< allocations with an alignment that is none
  std::uint64_t foreign;            ///< frees of what is no block of this heap
  std::uint64_t double_frees;       ///< frees of blocks that were free
  std::uint64_t overruns;           ///< blocks of a checked heap written past their end
};

/// What lanes of one SM share.
struct alignas(128) sm_cache {
  std::uint32_t begun, ended;  ///< moves of slabs from one place to another, see slab_source
  std::uint32_t pool_leaf;     ///< where they took slabs from the pool last
  std::uint32_t partial_leaf[slot_classes];  ///< and from the partial sets
  /// Partial slabs by class, + 1, or 0: looked at before the set of the class.
  simt::bus_word partial_cache[slot_classes][partial_cache_size / 4];

  GROSR_DEVICE std::uint32_t& partial_slot(std::uint32_t c, unsigned i) {
    return partial_cache[c][i / 4].w[i % 4];
  }
};

/// Runs up to this lie in one leaf word of the pool, or in two neighbours. They are taken without a
/// lock unless lanes meet.
inline constexpr std::uint32_t short_run = 64;
inline constexpr unsigned run_hints = 6;  ///< one for each octave of short runs

/// Words that runs share.
struct alignas(128) run_words {
  std::uint32_t lock;          ///< of longer runs, and of lanes that met others
  std::uint32_t claims_begun;  ///< slabs are out of the pool for a moment, and may come back
  std::uint32_t claims_ended;
  /// Where short runs are looked for first, in leaf words from the end of the pool.
  std::uint32_t hints[run_hints];
  std::uint64_t moment;     ///< grows, if watched, when whole slabs came free
  std::uint64_t exhausted;  ///< a moment, and the length of runs for which there was none then
};

/// Rarely written words that all share, each on a line of its own.
struct shared_words {
  alignas(128) std::uint32_t watched;  ///< not 0 once memory ran out
  alignas(128) std::uint32_t epoch;    ///< grows by 2, if watched, when slots or slabs came free
  std::uint32_t epoch_seen;            ///< by who waits for it
  std::uint64_t seen_at;               ///< and when it was first seen (clock_ns)
  alignas(128) std::uint32_t exhausted[slot_classes];  ///< epoch + 1 when it found no memory
  run_words of_runs;
};

/// Everything a heap consists of; by value in a heap_ref.
struct heap_view {
  unsigned char* slabs;        ///< slab_bytes each
  std::uint64_t* states;       ///< [slab]
  std::uint32_t* bits;         ///< [slab][words_a_slab]
  std::uint32_t* run_lengths;  ///< [slab], of heads of runs
  std::uint64_t* sets;         ///< pool, idle, partial[class], nearly_full[class]
  std::uint32_t* actives;      ///< [class][sm cache][max_ways]
  sm_cache* sm_caches;
  shared_words* words;
  fault_counts* faults;
  fault_list* found;    ///< of a checked heap, else null
  std::uint32_t count;  ///< slabs
  std::uint32_t sm_cache_count;
  std::uint32_t most_ways;   ///< a power of two, at most max_ways
  std::uint32_t home_words;  ///< leaf words of the pool that an SM's warps spread over, likewise
  std::uint32_t owner;       ///< who allocates through this view, in a checked heap
  std::uint32_t set_words;   ///< of each set

  GROSR_DEVICE slab_set pool() const { return {sets, count}; }
  GROSR_DEVICE slab_set idle() const { return {sets + set_words, count}; }
  GROSR_DEVICE slab_set partial(std::uint32_t c) const {
    return {sets + std::size_t{2 + c} * set_words, count};
  }
  GROSR_DEVICE slab_set nearly_full(std::uint32_t c) const {
    return {sets + std::size_t{2 + slot_classes + c} * set_words, count};
  }
  /// States are padded to a multiple of this, for loads that are under way together.
  static constexpr std::uint32_t states_multiple = 16;
  static constexpr std::uint32_t set_count = 2 + 2 * slot_classes;

  /// A bit a slab that was ever part of a run, in words of 64, behind the sets.
  GROSR_DEVICE std::uint64_t* ever_in_runs() const {
    return sets + std::size_t{set_count} * set_words;
  }

  GROSR_DEVICE simt::atomic_ref<std::uint64_t> state_of(std::uint32_t slab) const {
    return simt::atomic_ref<std::uint64_t>(states[slab]);
  }
  GROSR_DEVICE simt::atomic_ref<std::uint32_t> bits_of(std::uint32_t slab, std::uint32_t w) const {
    return simt::atomic_ref<std::uint32_t>(bits[std::size_t{slab} * words_a_slab + w]);
  }
  GROSR_DEVICE unsigned char* address(std::uint32_t slab, std::uint32_t offset) const {
    return slabs + std::size_t{slab} * slab_bytes + offset;
  }

  GROSR_DEVICE std::uint32_t& active_at(std::uint32_t c, std::uint32_t cache,
                                        std::uint32_t way) const {
    return actives[(c * sm_cache_count + cache) * max_ways + way];
  }

  /// The cache of the SM that the caller runs on.
  GROSR_DEVICE std::uint32_t cache_of_caller() const {
    std::uint32_t sm = simt::sm_id();
    return sm < sm_cache_count ? sm : sm % sm_cache_count;
  }

  /// A slab with fewer slots reserved goes to the partial set of its class: there is enough in it
  /// for a warp that makes it active. Between that and full it goes to the nearly-full set.
  GROSR_DEVICE static constexpr std::uint32_t partial_below(std::uint32_t slots) {
    std::uint32_t enough = slots > 32 && slots <= 512 ? slots / 2 : slots / 4;
    return slots - (enough > 1 ? enough : 1);
  }

  /// Active slabs that the warps of an SM spread over: more where a slab holds few slots.
  GROSR_DEVICE std::uint32_t ways(std::uint32_t slots) const {
    std::uint32_t n = slots >= 512 ? 4 : slots >= 128 ? 8 : 16;
    return n < most_ways ? n : most_ways;
  }
};

}  // namespace grosr::alloc
