// The table that tasks keep: chains of values in a heap of device memory, a lock for each bucket.
#pragma once

#include "grosr/alloc/heap_ref.hpp"
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/wait.hpp"
#include "session.hpp"

namespace grosr::store {

struct item {
  item* next;
  std::uint32_t hash, flags, value_bytes, key_bytes;

  /// The key, and then the value.
  GROSR_DEVICE unsigned char* text() { return reinterpret_cast<unsigned char*>(this + 1); }
};

struct bucket {
  std::uint32_t lock;  ///< 1: somebody has it
  std::uint32_t pad;
  item* first;
};

/// Passed by value. Warps that look, set and erase keep a bucket only while they copy, and never
/// wait for anything meanwhile.
struct device_table {
  bucket* buckets;
  std::uint32_t mask;    ///< their number, a power of two, less 1
  std::uint64_t* items;  ///< how many there are
  heap_ref heap;

  template <class Found>
  GROSR_DEVICE bool look(together team, const word& key, const Found& found) const {
    const std::uint32_t hash = hash_of(key);
    bucket& b = buckets[hash & mask];
    lock(team, b);
    item* at = *place_of(team, b, key, hash);
    if (at != nullptr) found(at->flags, at->text() + at->key_bytes, at->value_bytes);
    unlock(team, b);
    return at != nullptr;
  }

  GROSR_DEVICE stored set(together team, const word& key, std::uint32_t flags,
                          const unsigned char* value, std::uint32_t bytes) const {
    const std::uint32_t hash = hash_of(key);
    auto* made =
        static_cast<item*>(heap.allocate_group<group::warp>(sizeof(item) + key.bytes + bytes));
    if (made != nullptr) {
      if (team.leads()) *made = {nullptr, hash, flags, bytes, key.bytes};
      team.copy(made->text(), key.at, key.bytes);
      team.copy(made->text() + key.bytes, value, bytes);
    }
    bucket& b = buckets[hash & mask];
    lock(team, b);
    item** place = place_of(team, b, key, hash);
    item* old = *place;
    team.sync();
    if (team.leads()) {  // who finds no memory keeps no old value either
      if (made != nullptr) made->next = old != nullptr ? old->next : nullptr;
      if (made != nullptr || old != nullptr) *place = made != nullptr ? made : old->next;
    }
    unlock(team, b);
    change(team, made, old);
    return made != nullptr ? stored::yes : stored::no_memory;
  }

  GROSR_DEVICE bool erase(together team, const word& key) const {
    const std::uint32_t hash = hash_of(key);
    bucket& b = buckets[hash & mask];
    lock(team, b);
    item** place = place_of(team, b, key, hash);
    item* old = *place;
    team.sync();
    if (team.leads() && old != nullptr) *place = old->next;
    unlock(team, b);
    change(team, nullptr, old);
    return old != nullptr;
  }

  /// FNV-1a, and its bits mixed.
  GROSR_DEVICE static std::uint32_t hash_of(const word& key) {
    std::uint32_t h = 2166136261u;
    for (std::uint32_t i = 0; i < key.bytes; ++i) h = (h ^ key.at[i]) * 16777619u;
    h ^= h >> 16;
    h *= 0x7feb352du;
    return h ^ h >> 15;
  }

 private:
  GROSR_DEVICE static void lock(together team, bucket& b) {
    if (team.leads()) {
      simt::atomic_ref<std::uint32_t> word(b.lock);
      simt::wait_until([&] { return word.exchange(1, simt::acquire) == 0; },  // A1
                       simt::forever, nullptr, "a bucket of the table");
    }
    team.sync();
  }
  GROSR_DEVICE static void unlock(together team, bucket& b) {
    team.sync();
    if (team.leads())
      simt::atomic_ref<std::uint32_t>(b.lock).store(0, simt::release);  // R1: pairs with A1
    team.sync();
  }

  /// Where the pointer to the key's item is, or would be, in a bucket that is locked.
  GROSR_DEVICE static item** place_of(together team, bucket& b, const word& key,
                                      std::uint32_t hash) {
    item** place = &b.first;
    for (item* at = *place; at != nullptr; at = *place) {
      if (at->hash == hash && at->key_bytes == key.bytes &&
          team.equal(at->text(), key.at, key.bytes))
        break;
      place = &at->next;
    }
    return place;
  }

  /// Counts, and frees what nobody reaches any more.
  GROSR_DEVICE void change(together team, const item* made, item* old) const {
    if (team.leads()) {
      const std::uint64_t by = (made != nullptr ? 1 : 0) - std::uint64_t{old != nullptr ? 1u : 0u};
      if (by != 0) simt::atomic_ref<std::uint64_t>(*items).fetch_add(by, simt::relaxed);
      heap.deallocate(old);
    }
    team.sync();
  }
};

}  // namespace grosr::store
