// map: a hash table whose entries lie on all ranks of a world.
//
//   struct more {  // what an update does to a value, where the entry is
//     std::uint32_t by;
//     GROSR_DEVICE void operator()(std::uint32_t& n) const { n += by; }
//   };
//   struct tally {
//     grosr::net::map_ref<std::uint32_t, more> counts;
//     std::uint64_t key;
//     GROSR_DEVICE void operator()(auto& context) const {
//       counts.update(grosr::net::world_of(context), key, more{1});
//     }
//   };
//   using counts_map = grosr::net::map<std::uint32_t, more>;
//   grosr::net::world<tally, counts_map::tasks> world(ranks);
//   counts_map counts(world, 1'000'000);
#pragma once

#include <vector>

#include "grosr/net/detail/map_part.hpp"
#include "grosr/net/world.hpp"

namespace grosr::net {

template <class Value, class... Functions>
struct map_change;
template <class Value, class... Functions>
struct map_find;

/// What find() brings.
template <class Value>
struct map_found {
  bool there = false;
  Value value{};  ///< where it is there
};

/// What device code knows of a map: a member of tasks, 2 bytes, the same on all ranks. Keys are any
/// numbers of 64 bits. `world` is what world_of() gives; any lane may call, also after lanes
/// diverged. Changes return at once, and are made some time: world.wait_all() waits for them. Each
/// is made once and as a whole; two changes are in no order, as messages are. A change for which
/// the rank of its key has no room is not made: wait_all() says so.
template <class Value, class... Functions>
class map_ref {
  using change_type = map_change<Value, Functions...>;

 public:
  map_ref() = default;
  explicit map_ref(std::uint32_t number) : number_(static_cast<std::uint16_t>(number)) {}

  /// Stores a value.
  GROSR_DEVICE void put(const auto& world, std::uint64_t key, const Value& value) const {
    const std::uint32_t to = rank_of(world, key);
    simt::stay_together([&] {
      if (!change<true>(world, to, key, [&](Value& v) { v = value; }))
        world.send(to, change_type::of(key, *this, change_type::put, value));
    });
  }
  /// Stores a value if the key has none.
  GROSR_DEVICE void insert(const auto& world, std::uint64_t key, const Value& value) const {
    const std::uint32_t to = rank_of(world, key);
    simt::stay_together([&] {
      if (!change<false>(world, to, key, [&](Value& v) { v = value; }))
        world.send(to, change_type::of(key, *this, change_type::insert, value));
    });
  }
  /// Does f(value) where the entry is, whose value has all bytes zero if it was not there. The
  /// function is one of those of the map, a struct of at most 32 bytes; it runs while nobody else
  /// reads or changes the entry, and neither sends nor waits.
  template <class Function>
  GROSR_DEVICE void update(const auto& world, std::uint64_t key, const Function& f) const {
    static_assert((std::is_same_v<Function, Functions> || ...),
                  "grosr: a map is updated by the functions that its type names");
    const std::uint32_t to = rank_of(world, key);
    simt::stay_together([&] {
      if (!change<true>(world, to, key, f))
        world.send(to, change_type::of(key, *this, change_type::template update_by<Function>(), f));
    });
  }
  /// In a task that joins: whether there is an entry, and its value, go to `slot`, a member of what
  /// join() returned.
  GROSR_DEVICE void find(const auto& world, std::uint64_t key, map_found<Value>* slot) const {
    const std::uint32_t to = rank_of(world, key);
    if (const map_part<Value> part = part_of(world, to))
      slot->there = part.find(key, slot->value);
    else
      world.call(to, map_find<Value, Functions...>{key, *this}, slot);
  }

  /// The rank that has a key.
  GROSR_DEVICE std::uint32_t rank_of(const auto& world, std::uint64_t key) const {
    return rank_of_key(key, world.size());
  }
  /// Whether this rank has an entry, and its value.
  GROSR_DEVICE bool find_here(const auto& world, std::uint64_t key, Value& to) const {
    const map_part<Value> part = part_of(world, world.rank());
    return part && part.find(key, to);
  }
  /// This rank's entries lie in so many slots; the entry in one of them, if there is one.
  GROSR_DEVICE std::uint32_t slots_here(const auto& world) const {
    return part_of(world, world.rank()).slots();
  }
  GROSR_DEVICE bool read_here(const auto& world, std::uint32_t slot, std::uint64_t& key,
                              Value& to) const {
    const map_part<Value> part = part_of(world, world.rank());
    return slot < part.slots() && part.read(slot, key, to);
  }
  /// visit(key, value) for the entries of this rank in every `stride`th slot from `first` on. What
  /// is changed meanwhile is seen before or after that.
  template <class Visit>
  GROSR_DEVICE void each_here(const auto& world, std::uint32_t first, std::uint32_t stride,
                              const Visit& visit) const {
    const map_part<Value> part = part_of(world, world.rank());
    GROSR_NO_UNROLL
    for (std::uint64_t slot = first; slot < part.slots(); slot += stride) {
      std::uint64_t key = 0;
      Value value{};
      simt::stay_together([&] {
        if (part.read(static_cast<std::uint32_t>(slot), key, value)) visit(key, value);
      });
    }
  }

  GROSR_DEVICE std::uint32_t number() const { return number_; }

 private:
  /// Of a rank whose memory this one reaches; else none.
  GROSR_DEVICE map_part<Value> part_of(const auto& world, std::uint32_t rank) const {
    if (number_ < most_arrays)
      if (const array_part* part = world.reach(rank, number_)) return map_part<Value>(*part);
    return {};
  }

  /// False: the rank's memory is not reached from here.
  template <bool OfOld, class F>
  GROSR_DEVICE bool change(const auto& world, std::uint32_t rank, std::uint64_t key,
                           const F& f) const {
    const map_part<Value> part = part_of(world, rank);
    if (!part) {
      if (rank != world.rank()) return false;
      world.refuse(refused_no_map, number_, rank);
    } else if (!part.template change<OfOld>(key, f)) {
      world.refuse(refused_full, number_, rank);
    }
    return true;
  }

  std::uint16_t number_ = most_arrays;
};

/// A change that goes to the rank of its key.
template <class Value, class... Functions>
struct map_change {
  static_assert(((std::is_trivially_copyable_v<Functions> && sizeof(Functions) <= 32 &&
                  alignof(Functions) <= 8) &&
                 ...),
                "grosr: a function that updates a map is trivially copyable, has at most 32 bytes, "
                "and is aligned to at most 8");
  static constexpr std::uint16_t put = 0, insert = 1, updates = 2;
  static constexpr std::size_t bytes() {
    std::size_t most = sizeof(Value);
    ((most = sizeof(Functions) > most ? sizeof(Functions) : most), ...);
    return most;
  }
  template <class Function>
  static constexpr std::uint16_t update_by() {
    std::uint16_t at = updates;
    static_cast<void>((std::is_same_v<Function, Functions> || ... || (++at, false)));
    return at;
  }

  std::uint64_t key;
  std::uint32_t with[(bytes() + 3) / 4];  ///< a value or a function
  map_ref<Value, Functions...> map;
  std::uint16_t what;

  template <class With>
  GROSR_DEVICE static map_change of(std::uint64_t key, map_ref<Value, Functions...> map,
                                    std::uint16_t what, const With& with) {
    map_change c{key, {}, map, what};
    __builtin_memcpy(c.with, &with, sizeof with);
    return c;
  }
  template <class With>
  GROSR_DEVICE With given() const {
    With w{};
    __builtin_memcpy(&w, with, sizeof w);
    return w;
  }
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = world_of(context);
    if (what == put) map.put(world, key, given<Value>());
    if (what == insert) map.insert(world, key, given<Value>());
    update_by_one_of<updates, Functions...>(world);
  }

 private:
  template <std::uint16_t What>
  GROSR_DEVICE void update_by_one_of(const auto&) const {}
  template <std::uint16_t What, class F, class... More>
  GROSR_DEVICE void update_by_one_of(const auto& world) const {
    if (what == What)
      map.update(world, key, given<F>());
    else
      update_by_one_of<What + 1, More...>(world);
  }
};

template <class Value, class... Functions>
struct map_find {
  using result = map_found<Value>;
  std::uint64_t key;
  map_ref<Value, Functions...> map;
  GROSR_DEVICE int operator()(auto& context) const {
    const auto world = world_of(context);
    if (map.slots_here(world) == 0) return -EINVAL;
    map_found<Value> found;
    found.there = map.find_here(world, key, found.value);
    context.give(found);
    return 0;
  }
};

/// Among a world's task types: what maps of a type need.
template <class Value, class... Functions>
struct map_tasks {};

namespace detail {
template <class... Done, class Value, class... Functions, class... Left>
struct expand<tasks<Done...>, map_tasks<Value, Functions...>, Left...>
    : expand<tasks<Done..., map_change<Value, Functions...>, map_find<Value, Functions...>,
                   called<map_find<Value, Functions...>>, answer<map_find<Value, Functions...>>>,
             Left...> {};
}  // namespace detail

/// A hash table whose entries lie on all ranks of a world, by their keys; empty at first.
/// Functions: those that update it. The world names map<...>::tasks among its types. Made and ended
/// as an array of the world is, which it counts as. Its capacity never changes: an entry takes
/// about 1.5 times the bytes of key, value and 4 more, and there is no way to remove one.
template <class Value, class... Functions>
class map {
 public:
  using tasks = map_tasks<Value, Functions...>;
  struct entry {
    std::uint64_t key;
    Value value;
  };

  /// `capacity`: entries on all ranks. A rank has room for its share, and, where there are several,
  /// for what chance adds to that. Throws error(invalid_option) for more than 2^32 slots a rank;
  /// and as array.
  map(world_base& w, std::uint64_t capacity)
      : world_(&w),
        shape_(capacity, w.size(), sizeof(map_entry<Value>)),
        words_(w, shape_.words * w.size()) {
    map_header header{};
    header.kind = map_kind(sizeof(Value));
    header.room = shape_.room;
    std::uint64_t begin[sizeof header / 8];
    __builtin_memcpy(begin, &header, sizeof header);
    each_rank([&](std::uint32_t r) { words_.copy_part_from(r, begin); });
  }
  map(const map&) = delete;

  /// What tasks get.
  map_ref<Value, Functions...> ref() const {
    return map_ref<Value, Functions...>(words_.ref().number());
  }
  /// Entries that a rank has room for.
  std::uint64_t room() const { return shape_.room; }

  /// Entries on the ranks of this process, counted, and themselves, in no order. While nothing is
  /// under way. Copies from the devices: a header of each rank; all.
  std::uint64_t size() const {
    std::uint64_t all = 0;
    each_rank([&](std::uint32_t r) {
      std::uint64_t begin[sizeof(map_header) / 8];
      words_.copy_part_to(r, begin);
      map_header header;
      __builtin_memcpy(&header, begin, sizeof header);
      all += header.entries;
    });
    return all;
  }
  std::vector<entry> entries() const {
    std::vector<entry> all;
    std::vector<std::uint64_t> words(shape_.words);
    each_rank([&](std::uint32_t r) {
      words_.copy_part_to(r, words);
      const map_part<Value> part(
          array_part{reinterpret_cast<unsigned char*>(words.data()), words.size(), 8, 0});
      entry e{};
      for (std::uint32_t slot = 0; slot < part.slots(); ++slot)
        if (part.read(slot, e.key, e.value)) all.push_back(e);
    });
    return all;
  }

 private:
  /// The ranks of this process.
  template <class Each>
  void each_rank(const Each& each) const {
    for (std::uint32_t r = world_->first_rank(); world_->is_here(r); ++r) each(r);
  }

  world_base* world_;
  map_shape shape_;
  array<std::uint64_t> words_;
};

}  // namespace grosr::net
