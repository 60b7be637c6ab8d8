// Maps: they hold what a table of one thread holds, whatever lanes of all ranks do at once; entries
// are seen whole or not at all; what finds no room is named.
#include "grosr/net/map.hpp"

#include <algorithm>
#include <random>
#include <unordered_map>

#include "net/in_memory.hpp"
#include "net/small_world.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::net {
namespace {

using namespace tested;

GROSR_DEVICE_SUITE(maps);

/// What was added up, and how often; `check` follows from them.
struct sums {
  std::uint64_t total;
  std::uint32_t count;
  std::uint32_t bits[3];
  std::uint64_t check;
  GROSR_DEVICE void add(std::uint32_t n) {
    total += n;
    ++count;
    bits[n % 3] |= 1u << n % 32;
    check = expected_check();
  }
  GROSR_DEVICE std::uint64_t expected_check() const {
    return total * 3 + count + (bits[0] ^ bits[1] ^ bits[2]);
  }
  bool operator==(const sums& o) const {
    return total == o.total && count == o.count && check == o.check &&
           std::equal(bits, bits + 3, o.bits);
  }
};
struct note {
  std::uint32_t n;
  GROSR_DEVICE void operator()(sums& s) const { s.add(n); }
};
struct more {
  std::uint32_t by;
  GROSR_DEVICE void operator()(std::uint32_t& n) const { n += by; }
};

using numbers_map = map<std::uint32_t, more>;
using numbers_ref = map_ref<std::uint32_t, more>;
using sums_map = map<sums, note>;

enum class operation_kind : std::uint32_t { put, insert, update, count };

/// Changes an entry, or adds up those of a rank.
struct change_one {
  std::uint64_t key;
  numbers_ref map;
  operation_kind what;
  std::uint32_t value;
  array_ref<std::uint64_t> totals = {};
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = world_of(context);
    if (what == operation_kind::put) map.put(world, key, value);
    if (what == operation_kind::insert) map.insert(world, key, value);
    if (what == operation_kind::update) map.update(world, key, more{value});
    if (what != operation_kind::count) return;
    std::uint64_t keys = 0, values = 0, astray = 0;
    map.each_here(world, static_cast<std::uint32_t>(key), value,
                  [&](std::uint64_t k, std::uint32_t v) {
                    keys += k;
                    values += v;
                    astray += map.rank_of(world, k) == world.rank() ? 0 : 1;
                  });
    world.add(totals, 0, keys);
    world.add(totals, 1, values);
    world.add(totals, 2, astray);
  }
};

/// Whether a key has what is expected, or nothing.
struct looked {
  using result = void;
  map_found<std::uint32_t> found;
  std::uint32_t there, value, index;
  array_ref<std::uint32_t> good;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.status() == 0 && found.there == (there != 0) &&
        (!found.there || found.value == value))
      world_of(context).add(good, index, 1u);
  }
};
struct look_up {
  using result = void;
  std::uint64_t key;
  numbers_ref map;
  std::uint32_t there, value, index;
  array_ref<std::uint32_t> good;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(looked{{}, there, value, index, good});
    map.find(world_of(context), key, &next.found);
  }
};

/// Numbers noted for few keys by all lanes at once, which look at them meanwhile.
struct seen_whole {
  using result = void;
  map_found<sums> found;
  numbers_ref torn;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.status() != 0 || (found.there && found.value.check != found.value.expected_check()))
      torn.update(world_of(context), 0, more{1});
  }
};
struct note_many {
  using result = void;
  map_ref<sums, note> map;
  std::uint32_t first, count, keys;
  numbers_ref torn;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = world_of(context);
    for (std::uint32_t i = first; i < first + count; ++i) map.update(world, i % keys, note{i});
    auto& next = context.join(seen_whole{{}, torn});
    map.find(world, first % keys, &next.found);
  }
};

// One type of world for all tests: each takes nvcc a minute.
using maps_world =
    world<change_one, look_up, looked, note_many, seen_whole, numbers_map::tasks, sums_map::tasks>;
using widest = map_change<sums, note>;
static_assert(sizeof(widest) <= most_content);
static_assert(sizeof(map_change<std::uint32_t, more>) == 16);

world_options options_for(path by) {
  world_options o;
  o.link_bytes = 8 * 1024;
  o.path = by;
  return o;
}
constexpr path both_paths[] = {path::messages, path::automatic};
// Worlds take long to make and to wait for with a sanitizer.
constexpr bool slow = testing::slowdown != 1;
const std::vector<std::uint32_t> numbers_of_ranks =
    slow ? std::vector{1u, 3u} : std::vector{1u, 2u, 5u};

using table = std::unordered_map<std::uint64_t, std::uint32_t>;
table contents_of(const numbers_map& m) {
  table all;
  for (const auto& e : m.entries()) EXPECT_TRUE(all.emplace(e.key, e.value).second) << e.key;
  EXPECT_EQ(m.size(), all.size());
  return all;
}

/// Operations on one key are in no order: a key has one put or insert a round, or several updates.
void operate_at_random(const device& d, std::uint32_t ranks, path by, std::uint32_t keys,
                       std::uint32_t rounds) {
  maps_world w(small_ranks(d, ranks), options_for(by));
  numbers_map m(w, keys);
  array<std::uint32_t> good(w, keys);
  std::mt19937_64 random(ranks * 7 + keys);
  std::vector<std::uint64_t> names(keys);
  for (std::uint64_t& n : names) n = random() >> random() % 64;
  names[0] = 0;
  names[1] = ~std::uint64_t{0};
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  table expected;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::vector<std::vector<change_one>> changes(ranks);
    const auto change = [&](std::uint64_t key, operation_kind what, std::uint32_t value) {
      changes[random() % ranks].push_back({key, m.ref(), what, value});
    };
    for (const std::uint64_t key : names) {
      const auto value = static_cast<std::uint32_t>(random());
      switch (random() % 6) {
        case 0:
          change(key, operation_kind::put, value);
          expected[key] = value;
          break;
        case 1:
          change(key, operation_kind::insert, value);
          expected.emplace(key, value);
          break;
        case 2:
          for (std::uint32_t i = 0; i < 5; ++i) {
            change(key, operation_kind::update, value + i);
            expected[key] += value + i;
          }
      }
    }
    for (std::uint32_t r = 0; r < ranks; ++r)
      if (!changes[r].empty()) w.submit(r, changes[r]);
    finish(w);
    std::vector<look_up> looks;
    for (std::uint32_t i = 0; i < names.size(); ++i) {
      const auto at = expected.find(names[i]);
      const bool there = at != expected.end();
      looks.push_back({names[i], m.ref(), there ? 1u : 0u, there ? at->second : 0, i, good.ref()});
    }
    w.submit(static_cast<std::uint32_t>(random() % ranks), looks);
    finish(w);
  }
  EXPECT_EQ(contents_of(m), expected);
  std::vector<std::uint32_t> found(good.size());
  good.copy_to(found);
  EXPECT_EQ(std::count(found.begin(), found.end(), rounds), static_cast<long>(names.size()));
}

TEST_P(maps, hold_what_a_table_holds) {
  const auto keys = static_cast<std::uint32_t>(testing::scaled(600, 60));
  for (const std::uint32_t ranks : numbers_of_ranks)
    for (const path by : both_paths) operate_at_random(where(), ranks, by, keys, slow ? 1 : 4);
}

TEST_P(maps, hold_what_a_table_holds_under_seeded_schedules) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  testing::for_few_seeds(1000, 7, [&] {
    operate_at_random(where(), 2, path::messages, 20, 2);
    operate_at_random(where(), 2, path::automatic, 20, 2);
  });
}

void note_everywhere(const device& d, std::uint32_t ranks, path by, std::uint32_t tasks,
                     std::uint32_t count, std::uint32_t keys) {
  maps_world w(small_ranks(d, ranks), options_for(by));
  sums_map m(w, keys);
  numbers_map torn(w, 1);
  std::vector<sums> expected(keys);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::vector<note_many> all;
    for (std::uint32_t t = 0; t < tasks; ++t)
      all.push_back({m.ref(), (r * tasks + t) * count, count, keys, torn.ref()});
    w.submit(r, all);
  }
  for (std::uint32_t i = 0; i < ranks * tasks * count; ++i) expected[i % keys].add(i);
  finish(w);
  EXPECT_EQ(torn.size(), 0u);
  EXPECT_EQ(m.size(), keys);
  for (const auto& e : m.entries())
    EXPECT_TRUE(e.key < keys && e.value == expected[e.key]) << e.key;
}

TEST_P(maps, get_every_update_of_the_same_keys_once) {
  const auto count = static_cast<std::uint32_t>(testing::scaled(40, 8));
  for (const std::uint32_t ranks : numbers_of_ranks)
    for (const path by : both_paths) note_everywhere(where(), ranks, by, 64, count, 3);
}

TEST_P(maps, get_every_update_once_under_seeded_schedules) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  testing::for_few_seeds(1000, 7, [&] {
    note_everywhere(where(), 2, path::automatic, 33, 4, 2);
    note_everywhere(where(), 2, path::messages, 33, 4, 2);
  });
}

TEST_P(maps, keep_one_of_the_values_that_many_insert) {
  maps_world w(small_ranks(where(), 3), options_for(path::automatic));
  numbers_map m(w, 10);
  for (std::uint32_t r = 0; r < 3; ++r) {
    std::vector<change_one> all;
    for (std::uint32_t i = 0; i < 200; ++i)
      all.push_back({i % 10, m.ref(), operation_kind::insert, i % 10 * 1000 + r * 200 + i});
    w.submit(r, all);
  }
  finish(w);
  const table found = contents_of(m);
  EXPECT_EQ(found.size(), 10u);
  for (const auto& [key, value] : found) {
    EXPECT_LT(value - key * 1000, 600u);
    EXPECT_EQ(value % 10, key);
  }
}

TEST_P(maps, are_gone_through_by_their_ranks) {
  constexpr std::uint32_t ranks = 3, n = 500, lanes = 40;
  maps_world w(small_ranks(where(), ranks), options_for(path::messages));
  numbers_map m(w, n);
  array<std::uint64_t> totals(w, 3);
  std::vector<change_one> all;
  for (std::uint32_t i = 0; i < n; ++i) all.push_back({i, m.ref(), operation_kind::put, 2 * i + 1});
  w.submit(1, all);
  finish(w);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::vector<change_one> counts;
    for (std::uint32_t i = 0; i < lanes; ++i)
      counts.push_back({i, m.ref(), operation_kind::count, lanes, totals.ref()});
    w.submit(r, counts);
  }
  finish(w);
  std::vector<std::uint64_t> found(3);
  totals.copy_to(found);
  EXPECT_EQ(found, (std::vector<std::uint64_t>{n * (n - 1) / 2, n * n, 0}));
}

// ---- full, and gone ----

void fill(const device& d, std::uint32_t ranks, path by) {
  constexpr std::uint32_t capacity = 50, n = 400;
  maps_world w(small_ranks(d, ranks), options_for(by));
  numbers_map m(w, capacity);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::vector<change_one> all;
    for (std::uint32_t i = r; i < n; i += ranks)
      all.push_back({i, m.ref(), operation_kind::put, 3 * i});
    w.submit(r, all);
  }
  std::string said;
  try {
    w.wait_all();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::out_of_memory);
    said = e.what();
  }
  const table found = contents_of(m);
  for (const auto& [key, value] : found) EXPECT_EQ(value, 3 * key);
  EXPECT_GE(found.size(), capacity);
  EXPECT_LT(found.size(), n);
  const std::string begin = "world: " + std::to_string(n - found.size()) +
                            " operations were refused; map 0 has ",
                    end = " and room for " + std::to_string(m.room()) + "; make it larger";
  EXPECT_TRUE(said.starts_with(begin) && said.ends_with(end)) << said;
  // Entries that are there can be changed, and are found.
  const std::uint64_t key = found.begin()->first;
  w.submit(0, change_one{key, m.ref(), operation_kind::update, 5});
  finish(w);
  EXPECT_EQ(contents_of(m)[key], 3 * key + 5);
}

TEST_P(maps, that_are_full_are_named) {
  for (const std::uint32_t ranks : {1u, 3u})
    for (const path by : both_paths) fill(where(), ranks, by);
}

TEST_P(maps, have_room_for_their_capacity) {
  for (const std::uint32_t ranks : numbers_of_ranks)
    for (const std::uint32_t capacity : {0u, 1u, 2u, 17u, 1000u}) {
      if (slow && capacity % 17 > 1) continue;
      maps_world w(small_ranks(where(), ranks), options_for(path::automatic));
      numbers_map m(w, capacity);
      std::vector<change_one> all;
      for (std::uint32_t i = 0; i < capacity; ++i)
        all.push_back({i * 0x1'0000'0001u, m.ref(), operation_kind::insert, i});
      if (!all.empty()) w.submit(0, all);
      finish(w);
      EXPECT_EQ(contents_of(m).size(), capacity);
    }
}

TEST_P(maps, that_are_gone_are_not_touched) {
  for (const path by : both_paths) {
    maps_world w(small_ranks(where(), 2), options_for(by));
    array<std::uint32_t> good(w, 1), other(w, 100);
    numbers_ref gone;
    {
      numbers_map m(w, 10);
      gone = m.ref();
    }
    // One of each: of a map that is gone, of none, of an array, of a map with other values.
    sums_map wide(w, 10);
    EXPECT_EQ(wide.ref().number(), gone.number());
    for (const auto& m : {gone, numbers_ref(), numbers_ref(other.ref().number())})
      for (std::uint64_t key = 0; key < 20; ++key) {
        w.submit(0, change_one{key, m, operation_kind::put, 7});
        w.submit(1, look_up{key, m, 0, 0, 0, good.ref()});
      }
    try {
      w.wait_all();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::misuse);
      EXPECT_TRUE(std::string(e.what()).starts_with("world: 60 operations were refused; rank "))
          << e.what();
    }
    EXPECT_EQ(wide.size(), 0u);
    std::vector<std::uint32_t> found(100);
    other.copy_to(found);
    EXPECT_EQ(std::count(found.begin(), found.end(), 0u), 100);
  }
}

TEST_P(maps, that_are_too_large_are_refused) {
  maps_world w(small_ranks(where(), 2));
  EXPECT_THROW(numbers_map(w, std::uint64_t{1} << 40), error);
  EXPECT_THROW(numbers_map(w, ~std::uint64_t{0}), error);
}

// ---- between processes ----

TEST_P(maps, lie_on_ranks_of_several_processes) {
  in_processes(2, [&](transport& t) {
    world_options o = options_for(path::automatic);
    o.processes = &t;
    o.collective_within = std::chrono::seconds(300);
    maps_world w(small_ranks(where(), 2), o);
    constexpr std::uint32_t n = 300;
    numbers_map m(w, n);
    for (std::uint32_t r = w.first_rank(); w.is_here(r); ++r) {
      std::vector<change_one> all;
      for (std::uint32_t i = 0; i < n; ++i)
        all.push_back({i, m.ref(), operation_kind::update, i + r});
      w.submit(r, all);
    }
    finish(w);
    array<std::uint64_t> sizes(w, 4, distribution::cyclic);
    const table mine = contents_of(m);
    for (const auto& [key, value] : mine) {
      EXPECT_TRUE(w.is_here(rank_of_key(key, w.size())));
      EXPECT_EQ(value, 4 * key + 6);
    }
    sizes.copy_part_from(w.first_rank(), std::vector<std::uint64_t>{mine.size()});
    std::vector<std::uint64_t> all(4);
    sizes.copy_to(all);
    EXPECT_EQ(all[0] + all[2], n);
    EXPECT_EQ(all[1] + all[3], 0u);
    // What finds no room is named in all processes.
    numbers_map little(w, 2);
    if (t.process() == 1)
      for (std::uint64_t i = 0; i < 100; ++i)
        w.submit(3, change_one{i, little.ref(), operation_kind::put, 1});
    try {
      w.wait_all();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::out_of_memory) << e.what();
      EXPECT_NE(std::string(e.what()).find("and room for 2;"), std::string::npos) << e.what();
    }
  });
}

}  // namespace
}  // namespace grosr::net
