// What holds for worlds of several processes, whatever carries their bytes. Each function is called
// by all of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "grosr/net/transport.hpp"
#include "net/small_world.hpp"
#include "support/scale.hpp"

namespace grosr::net::tested {

/// Adds to elements all over.
struct add_all_over {
  array_ref<std::uint64_t> sums;
  std::uint32_t first, count;
  GROSR_DEVICE static std::uint64_t next(std::uint64_t x) {
    return x * 6364136223846793005u + 1442695040888963407u;
  }
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    std::uint64_t x = first * 0x9e3779b97f4a7c15u + 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      x = next(x);
      world.add(sums, (x >> 20) % sums.size(), x >> 60);
    }
  }
};

/// Looks at what an element holds.
struct element_seen {
  using result = void;
  std::uint64_t index, value;
  array_ref<std::uint64_t> good;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.status() == 0 && value == 3 * index) world_of(context).add(good, index, 1u);
  }
};
struct element_look {
  using result = void;
  array_ref<std::uint64_t> numbers, good;
  std::uint64_t index;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(element_seen{index, 0, good});
    world_of(context).get(numbers, index, &next.value);
  }
};

/// Brings a result of several words, or an error.
struct answered {
  std::uint64_t first, second;
  std::uint32_t rank;
};
struct question {
  using result = answered;
  std::uint64_t x;
  GROSR_DEVICE int operator()(auto& context) const {
    if (x % 17 == 16) return -EDOM;
    context.give(answered{x * x, x + 1, world_of(context).rank()});
    return 0;
  }
};
struct checked {
  using result = void;
  answered found;
  std::uint32_t x, to;
  array_ref<std::uint64_t> good;
  GROSR_DEVICE void operator()(auto& context) const {
    const bool ok = x % 17 == 16 ? context.status() == -EDOM
                                 : context.status() == 0 && found.first == std::uint64_t{x} * x &&
                                       found.second == x + 1 && found.rank == to;
    if (ok) world_of(context).add(good, x, 1u);
  }
};
struct asks {
  using result = void;
  std::uint32_t x, to;
  array_ref<std::uint64_t> good;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(checked{{}, x, to, good});
    world_of(context).call(to, question{x}, &next.found);
  }
};

/// Sends far more than links have room for, each way, in no order.
struct spread {
  array_ref<std::uint64_t> marks;
  std::uint32_t left;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = world_of(context);
    world.add(marks, world.rank(), 1u);
    if (left == 0) return;
    for (std::uint32_t i = 0; i < 3; ++i)
      world.send((world.rank() + i) % world.size(), spread{marks, left - 1});
  }
};

using processes_world =
    world<add_all_over, element_look, element_seen, callable<question>, checked, asks, spread>;

inline world_options options_with(transport& all) {
  world_options o;
  o.link_bytes = 8 * 1024;
  o.path = path::messages;
  o.processes = &all;
  o.collective_within = std::chrono::seconds(300);
  return o;
}
inline std::vector<std::uint64_t> all_of(const array<std::uint64_t>& a) {
  std::vector<std::uint64_t> found(a.size());
  a.copy_to(found);
  return found;
}

/// Process p has `ranks(p)` ranks.
using ranks_of = std::uint32_t (*)(std::uint32_t);
inline std::uint32_t one_each(std::uint32_t) { return 1; }
inline std::uint32_t two_each(std::uint32_t) { return 2; }
inline std::uint32_t one_or_three(std::uint32_t p) { return p % 2 == 0 ? 1 : 3; }

inline void add_between_processes(transport& all, const device& d, ranks_of ranks) {
  processes_world w(small_ranks(d, ranks(all.process())), options_with(all));
  std::uint32_t expected_ranks = 0;
  for (std::uint32_t p = 0; p < all.processes(); ++p) {
    if (p == all.process()) {
      EXPECT_EQ(w.first_rank(), expected_ranks);
    }
    expected_ranks += ranks(p);
  }
  EXPECT_EQ(w.size(), expected_ranks);
  EXPECT_EQ(w.ranks_here(), ranks(all.process()));
  constexpr std::uint32_t tasks = 40;
  const auto count = static_cast<std::uint32_t>(testing::scaled(300, 30));
  for (auto how : {distribution::block, distribution::cyclic}) {
    array<std::uint64_t> sums(w, 1000, how);
    std::vector<std::uint64_t> expected(1000);
    for (std::uint32_t r = 0; r < w.size(); ++r) {
      std::vector<add_all_over> mine;
      for (std::uint32_t i = 0; i < tasks; ++i) {
        const add_all_over t{sums.ref(), r * tasks + i, count};
        mine.push_back(t);
        std::uint64_t x = t.first * 0x9e3779b97f4a7c15u + 1;
        for (std::uint32_t k = 0; k < count; ++k) {
          x = add_all_over::next(x);
          expected[(x >> 20) % 1000] += x >> 60;
        }
      }
      if (w.is_here(r)) w.submit(r, mine);
    }
    w.wait_all();
    EXPECT_EQ(all_of(sums), expected);
  }
  std::uint64_t sent = 0;
  for (const rank_stats& s : w.stats()) {
    EXPECT_EQ(s.words_sent, s.words_received);
    sent += s.words_sent;
  }
  EXPECT_EQ(sent != 0, w.size() > 1);
}

inline void read_between_processes(transport& all, const device& d) {
  processes_world w(small_ranks(d, 1), options_with(all));
  constexpr std::size_t n = 300;
  array<std::uint64_t> numbers(w, n, distribution::cyclic), good(w, n);
  std::vector<std::uint64_t> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = 3 * i;
  numbers.copy_from(values);
  std::vector<element_look> looks;
  for (std::uint64_t i = 0; i < n; ++i) looks.push_back({numbers.ref(), good.ref(), i});
  w.submit(w.first_rank(), looks);
  w.wait_all();
  EXPECT_EQ(all_of(good), std::vector<std::uint64_t>(n, w.size()));
  // Each its own part.
  std::vector<std::uint64_t> part(numbers.shape().size_of(w.first_rank()));
  numbers.copy_part_to(w.first_rank(), part);
  for (std::uint64_t i = 0; i < part.size(); ++i)
    EXPECT_EQ(part[i], 3 * numbers.shape().index_of({w.first_rank(), i}));
  std::fill(part.begin(), part.end(), w.first_rank() + 1);
  numbers.copy_part_from(w.first_rank(), part);
  const std::vector<std::uint64_t> found = all_of(numbers);
  for (std::uint64_t i = 0; i < n; ++i) EXPECT_EQ(found[i], numbers.shape().find(i).rank + 1);
}

inline void call_between_processes(transport& all, const device& d) {
  processes_world w(small_ranks(d, 2), options_with(all));
  const auto n = static_cast<std::uint32_t>(testing::scaled(1000, 100));
  array<std::uint64_t> good(w, n);
  for (std::uint32_t r = w.first_rank(); r < w.first_rank() + w.ranks_here(); ++r) {
    std::vector<asks> mine;
    for (std::uint32_t x = 0; x < n; ++x) mine.push_back({x, (r + x) % w.size(), good.ref()});
    w.submit(r, mine);
  }
  w.wait_all();
  EXPECT_EQ(all_of(good), std::vector<std::uint64_t>(n, w.size()));
}

inline void fill_links_between_processes(transport& all, const device& d) {
  processes_world w(small_ranks(d, 1), options_with(all));
  array<std::uint64_t> marks(w, w.size());
  const std::uint32_t depth = testing::scale() < 0.5 ? 6 : 8;
  std::uint64_t expected = 0, level = 1;
  for (std::uint32_t i = 0; i <= depth; ++i, level *= 3) expected += level;
  w.submit(w.first_rank(), spread{marks.ref(), depth});
  w.wait_all();
  std::uint64_t sum = 0;
  for (const std::uint64_t m : all_of(marks)) sum += m;
  EXPECT_EQ(sum, w.size() * expected);
}

/// Throws, with all of these in the text.
inline void expect_error(errc code, const std::vector<std::string>& parts,
                         const std::function<void()>& what) {
  try {
    what();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), code) << e.what();
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

inline void refuse_between_processes(transport& all, const device& d) {
  const std::uint32_t other = (all.process() + 1) % all.processes();
  {
    processes_world w(small_ranks(d, 1), options_with(all));
    array<std::uint64_t> a(w, 10);
    if (all.processes() > 1)
      expect_error(errc::invalid_option, {"rank " + std::to_string(other) + " is in process"}, [&] {
        w.submit(other, spread{a.ref(), 0});
      });
    // Of one process, and all hear of it.
    array_ref<std::uint64_t> gone;
    {
      array<std::uint64_t> b(w, 10);
      gone = b.ref();
    }
    if (all.process() == 0) w.submit(0, spread{gone, 0});
    expect_error(errc::misuse, {"1 operations were refused; rank 0 asked for a add"},
                 [&] { w.wait_all(); });
    w.wait_all();  // said once
    if (all.processes() > 1)
      expect_error(errc::misuse, {"array: process "},
                   [&] { array<std::uint64_t> c(w, 10 + all.process()); });
    w.wait_all();
  }
  if (all.processes() == 1) return;
  world_options o = options_with(all);
  o.link_bytes <<= all.process() == 0 ? 1 : 0;
  expect_error(errc::misuse, {"link_bytes", "process 0", "16384", "8192"},
               [&] { processes_world w(small_ranks(d, 1), o); });
}

inline void refuse_other_types(transport& all, const device& d) {
  expect_error(errc::misuse, {"process 0", "the task types", "spread"}, [&] {
    if (all.process() == 0)
      world<spread> w(small_ranks(d, 1), options_with(all));
    else
      processes_world w(small_ranks(d, 1), options_with(all));
  });
}

/// What never ends is dropped by all, in time.
inline void stop_between_processes(transport& all, const device& d) {
  processes_world w(small_ranks(d, 1), options_with(all));
  array<std::uint64_t> marks(w, w.size());
  w.submit(w.first_rank(), spread{marks.ref(), ~0u});
  const auto began = std::chrono::steady_clock::now();
  expect_error(errc::timed_out, {"words of messages not received"},
               [&] { w.stop(std::chrono::milliseconds(100)); });
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
}

/// The last one does not come.
inline void name_who_does_not_come(transport& all, const device& d) {
  const std::uint32_t last = all.processes() - 1;
  if (all.process() == last) return;
  world_options o = options_with(all);
  o.collective_within = std::chrono::seconds(1);
  expect_error(errc::timed_out, {"waited for process " + std::to_string(last)},
               [&] { processes_world w(small_ranks(d, 1), o); });
}

}  // namespace grosr::net::tested
