// A rank's part of a distributed hash table: a header and entries, in an array of 8-byte words.
//
//     header   kind, room, entries                  128 bytes
//     entry    key │ state │ value                  8, 4 and 4 to 32 bytes; open addressing
//     state    version 30 │ phase 2
//
// docs/internals/messages.md, "Maps".
#pragma once

#include <cstdint>
#include <type_traits>

#include "grosr/net/detail/rank_state.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::net {

struct map_header {
  std::uint64_t kind;  ///< map_kind(): else the part is not that of such a map
  std::uint64_t room;  ///< entries that it is for
  std::uint64_t reserved[6];
  std::uint64_t entries;
  std::uint64_t more_reserved[7];
};
static_assert(sizeof(map_header) == 128);

constexpr std::uint64_t map_kind(std::size_t value_bytes) {
  return std::uint64_t{0x67726f73'72206d61} + value_bytes;
}

/// What a map says that an array does not, as operation of refusals: their index is the rank then.
inline constexpr std::uint32_t refused_full = 1u << 9;     ///< its part had no room
inline constexpr std::uint32_t refused_no_map = 1u << 10;  ///< there is no such map there

/// Mixes a key: the finalizer of SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable
/// pseudorandom number generators", 2014; constants: D. Stafford's variant 13).
GROSR_DEVICE constexpr std::uint64_t mixed(std::uint64_t key) {
  key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u;
  key = (key ^ key >> 27) * 0x94d049bb133111ebu;
  return key ^ key >> 31;
}
/// A number below n from 32 random bits (D. Lemire, "Fast random integer generation in an
/// interval", 2019). The lower half of a mixed key says the rank, and the upper one the place.
GROSR_DEVICE constexpr std::uint32_t below(std::uint32_t random, std::uint64_t n) {
  return static_cast<std::uint32_t>(random * n >> 32);
}
GROSR_DEVICE constexpr std::uint32_t rank_of_key(std::uint64_t key, std::uint32_t ranks) {
  return below(static_cast<std::uint32_t>(mixed(key)), ranks);
}

template <class Value>
struct map_entry {
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) >= 4 && sizeof(Value) <= 32 &&
                    alignof(Value) <= 8,
                "grosr: a value of a map is trivially copyable, has 4 to 32 bytes, and is aligned "
                "to at most 8");
  static constexpr unsigned words = (sizeof(Value) + 3) / 4;
  std::uint64_t key;
  std::uint32_t state;
  std::uint32_t value[words];
};

template <class Value>
class map_part {
 public:
  using entry = map_entry<Value>;

  GROSR_DEVICE map_part() = default;
  /// `p`: of an array of 8-byte words; anything else is no part of a map.
  GROSR_DEVICE explicit map_part(const array_part& p) {
    if (p.count * 8 < sizeof(map_header) + sizeof(entry)) return;
    auto* const header = reinterpret_cast<map_header*>(p.elements);
    if (header->kind != map_kind(sizeof(Value))) return;
    header_ = header;
    entries_ = reinterpret_cast<entry*>(header + 1);
    slots_ = static_cast<std::uint32_t>((p.count * 8 - sizeof(map_header)) / sizeof(entry));
  }
  GROSR_DEVICE explicit operator bool() const { return header_ != nullptr; }
  GROSR_DEVICE std::uint32_t slots() const { return slots_; }

  /// Any lane: what f(value) makes of the value of a key. Where there is no entry, one is made
  /// first, all bytes of its value zero; of an entry that is there only if OfOld. f runs while the
  /// entry is locked: it sends nothing and waits for nothing. False: there is no room.
  template <bool OfOld, class F>
  GROSR_DEVICE bool change(std::uint64_t key, const F& f) const {
    std::uint32_t slot = home(key), passed = 0;
    unsigned idle = 0;
    GROSR_NO_UNROLL
    for (;;) {
      entry& e = entries_[slot];
      const simt::atomic_ref<std::uint32_t> state(e.state);
      // A1: pairs with R1.
      std::uint32_t seen = state.load(simt::acquire);
      const std::uint32_t phase = seen & phases;
      if (phase == empty) {
        const simt::atomic_ref<std::uint64_t> count(header_->entries);
        if (count.load(simt::relaxed) >= header_->room) {
          // The last room there was may have gone to this key.
          simt::fence(simt::acquire);  // A3: pairs with R3.
          if (state.load(simt::relaxed) == empty) return false;
          continue;
        }
        if (!state.compare_exchange(seen, claimed, simt::relaxed)) continue;
        simt::atomic_ref<std::uint64_t>(e.key).store(key, simt::relaxed);
        count.fetch_add(1, simt::after_result());  // R3: pairs with A3.
        Value v = value_of({});
        f(v);
        store(e, v, simt::relaxed);
        state.store(ready, simt::release);  // R1: pairs with A1.
        return true;
      }
      if (phase != claimed && simt::atomic_ref<std::uint64_t>(e.key).load(simt::relaxed) != key) {
        if (++passed == slots_) return false;
        slot = slot + 1 == slots_ ? 0 : slot + 1;
        continue;
      }
      if constexpr (!OfOld)
        if (phase != claimed) return true;
      // Who has the lock goes on; the other lanes come by here again.
      if (phase != ready || !state.compare_exchange(seen, seen - ready + locked, simt::acquire)) {
        simt::pause(idle++, "an entry of a map that another lane changes");
        continue;
      }
      Value v = value_of(words_of(e));
      f(v);
      // After the lock was taken: who reads one of these words sees that it was (R2: pairs with
      // A2).
      store(e, v, simt::after_result());
      state.store(seen + version, simt::release);  // R1: pairs with A1.
      return true;
    }
  }

  /// Any lane: whether there is an entry, and its value.
  GROSR_DEVICE bool find(std::uint64_t key, Value& to) const {
    std::uint32_t slot = home(key);
    GROSR_NO_UNROLL
    for (std::uint32_t passed = 0; passed != slots_; ++passed) {
      std::uint64_t found = 0;
      const reading r = read_if(slot, &key, found, to);
      if (r != reading::another) return r == reading::whole;
      slot = slot + 1 == slots_ ? 0 : slot + 1;
    }
    return false;
  }
  /// Any lane: whether there is an entry in a slot, and what it is.
  GROSR_DEVICE bool read(std::uint32_t slot, std::uint64_t& key, Value& to) const {
    return read_if(slot, nullptr, key, to) == reading::whole;
  }

 private:
  /// No entry; one whose key is not there yet; one that a lane changes; one that is whole.
  static constexpr std::uint32_t empty = 0, claimed = 1, locked = 2, ready = 3, phases = 3,
                                 version = 4;
  struct words {
    std::uint32_t w[entry::words];
  };
  enum class reading : std::uint8_t { none, another, whole };

  GROSR_DEVICE std::uint32_t home(std::uint64_t key) const {
    return below(static_cast<std::uint32_t>(mixed(key) >> 32), slots_);
  }
  GROSR_DEVICE static Value value_of(const words& w) {
    Value v{};
    __builtin_memcpy(&v, w.w, sizeof v);
    return v;
  }
  GROSR_DEVICE static words words_of(entry& e) {
    words w;
    for (unsigned i = 0; i < entry::words; ++i)
      w.w[i] = simt::atomic_ref<std::uint32_t>(e.value[i]).load(simt::relaxed);
    return w;
  }
  GROSR_DEVICE static void store(entry& e, const Value& v, simt::order o) {
    words w{};
    __builtin_memcpy(w.w, &v, sizeof v);
    for (unsigned i = 0; i < entry::words; ++i)
      simt::atomic_ref<std::uint32_t>(e.value[i]).store(w.w[i], o);
  }

  /// An entry as no lane was changing it (a sequence lock: H. Boehm, "Can seqlocks get along with
  /// programming language memory models?", 2012), if its key is *wanted.
  GROSR_DEVICE reading read_if(std::uint32_t slot, const std::uint64_t* wanted, std::uint64_t& key,
                               Value& to) const {
    entry& e = entries_[slot];
    const simt::atomic_ref<std::uint32_t> state(e.state);
    GROSR_NO_UNROLL
    for (unsigned idle = 0;; ++idle) {
      const std::uint32_t before = state.load(simt::acquire);  // A1: pairs with R1.
      const std::uint32_t phase = before & phases;
      // What is not whole yet is not there yet.
      if (phase == empty || (phase == claimed && wanted == nullptr)) return reading::none;
      if (phase != claimed) {
        key = simt::atomic_ref<std::uint64_t>(e.key).load(simt::relaxed);
        if (wanted != nullptr && key != *wanted) return reading::another;
      }
      if (phase == ready) {
        const words w = words_of(e);
        simt::fence(simt::acquire);  // A2: pairs with R2.
        if (state.load(simt::relaxed) == before) {
          to = value_of(w);
          return reading::whole;
        }
      }
      simt::pause(idle, "an entry of a map that another lane changes");
    }
  }

  map_header* header_ = nullptr;
  entry* entries_ = nullptr;
  std::uint32_t slots_ = 0;
};

/// How large a part is: the same on all ranks.
struct map_shape {
  std::uint32_t slots;
  std::uint64_t room;  ///< entries
  std::uint64_t words;

  /// For `capacity` entries on all ranks: with all likelihood no rank has more than it has room
  /// for. Throws error(invalid_option) for more than 2^32 slots a rank.
  map_shape(std::uint64_t capacity, std::uint32_t ranks, std::size_t entry_bytes);
};

}  // namespace grosr::net
