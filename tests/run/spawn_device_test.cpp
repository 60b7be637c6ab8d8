// Everything that tasks spawn runs exactly once: deep and wide, of other types, widths and
// priorities, from lanes that diverged.
#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/scramble.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(spawn);

TEST_P(spawn, runs_binary_trees) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(16);
  const std::uint32_t deepest = scaled_depth(15, 12);
  for (std::uint32_t depth = 0; depth <= deepest; ++depth)
    rt->submit(tree{leaves.data() + depth, depth});
  rt->wait_all();
  const auto all = contents(leaves);
  for (std::uint32_t depth = 0; depth <= deepest; ++depth) EXPECT_EQ(all[depth], 1u << depth);
}

TEST_P(spawn, runs_trees_of_every_width) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(4);
  rt->submit(warp_tree{leaves.data(), 9});
  rt->submit(block_tree{leaves.data() + 1, 7});
  rt->submit(large_tree{leaves.data() + 2, 12, {}});
  rt->submit(mixed{leaves.data() + 3, 6});
  rt->wait_all();
  EXPECT_EQ(contents(leaves), (std::vector<std::uint32_t>{512, 128, 4096, 729}));
}

TEST_P(spawn, runs_what_one_task_starts) {
  auto rt = start();
  const auto n = static_cast<std::uint32_t>(scaled(10'000, 2000));
  for (std::uint32_t levels : {0u, 1u}) {
    rt->park();  // memcheck knows no memory that comes while a kernel runs
    auto& cells = keep<std::uint32_t>(n);
    rt->submit(fan_out{cells.data(), 0, n, levels});
    rt->wait_all();
    EXPECT_TRUE(all_are(cells, 1u));
  }
}

TEST_P(spawn, runs_what_many_tasks_start_at_once) {
  auto rt = start();
  constexpr std::uint32_t parents = 300, each = 50;
  auto& cells = keep<std::uint32_t>(parents * each);
  std::vector<fan_out> tasks;
  for (std::uint32_t i = 0; i < parents; ++i)
    tasks.push_back({cells.data(), i * each, each, i % 2});
  rt->submit(tasks);
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
}

// Lanes that run side by side take different ways: some spawn, in branches and loops of their own.
struct leaf {
  std::uint32_t* cell;
  std::uint32_t level;
  GROSR_DEVICE int operator()(auto& context) const {
    add_one(cell);
    return context.level() == static_cast<priority>(level) ? 0 : -1;
  }
};
struct divergent {
  std::uint32_t* cells;  ///< 8 for each task
  std::uint32_t index;
  std::uint32_t* refused;
  GROSR_DEVICE void operator()(auto& context) const {
    std::uint32_t* mine = cells + 8 * index;
    const auto same = static_cast<std::uint32_t>(context.level());
    if (index % 2 == 1) {
      context.spawn(leaf{mine, same});
      if (index % 4 == 1) {
        context.spawn(leaf{mine + 1, static_cast<std::uint32_t>(priority::low)}, priority::low);
      } else {
        for (std::uint32_t k = 0; k < scramble(index) % 4; ++k) context.spawn(leaf{mine + 2, same});
      }
    } else {
      // Each lane another level.
      const std::uint32_t level = index / 2 % priority_levels;
      context.spawn(leaf{mine + 3, level}, static_cast<priority>(level));
    }
    if (index % 3 == 0) {
      if (!context.try_spawn(leaf{mine + 4, same})) add_one(refused);
      if (!context.try_spawn(leaf{mine + 5, 1}, priority::normal)) add_one(refused);
    }
  }
};

TEST_P(spawn, from_lanes_that_diverged) {
  runtime<divergent, leaf> rt(where(), small_options());
  const auto n = static_cast<std::uint32_t>(scaled(1000, 200));
  auto& cells = keep<std::uint32_t>(8 * n);
  auto& refused = keep<std::uint32_t>(1);
  std::vector<divergent> tasks;
  for (std::uint32_t i = 0; i < n; ++i) tasks.push_back({cells.data(), i, refused.data()});
  const ticket t = rt.submit(tasks, priority::normal);
  rt.wait_all();
  EXPECT_FALSE(t.failed());
  EXPECT_EQ(rt.errors().size(), 0u);
  EXPECT_EQ(contents(refused)[0], 0u);
  const auto all = contents(cells);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t expected[8] = {i % 2,      i % 4 == 1, i % 4 == 3 ? scramble(i) % 4 : 0,
                                       i % 2 == 0, i % 3 == 0, i % 3 == 0,
                                       0,          0};
    for (std::uint32_t k = 0; k < 8; ++k)
      ASSERT_EQ(all[8 * i + k], expected[k]) << "task " << i << ", kind " << k;
  }
}

// Lanes that run side by side start tasks of different types.
struct split {
  std::uint32_t* cells;  ///< 4 for each task
  std::uint32_t index;
  GROSR_DEVICE void operator()(auto& context) const {
    switch (scramble(index) % 5) {
      case 0:
        return context.spawn(mark<16>{cells, 4 * index, {4 * index * 31}});
      case 1: {
        mark<64> m{cells, 4 * index + 1, {}};
        for (std::uint32_t k = 0; k < 13; ++k) m.check[k] = m.index * 31 + k;
        return context.spawn(m);
      }
      case 2:
        return context.spawn(warp_mark{cells, 4 * index + 2});
      case 3:
        return context.spawn(block_mark{cells, 4 * index + 3});
    }
  }
};

TEST_P(spawn, of_different_types_from_lanes_that_diverged) {
  runtime<split, mark<16>, mark<64>, warp_mark, block_mark> rt(where(), small_options());
  const auto n = static_cast<std::uint32_t>(scaled(1000, 200));
  auto& cells = keep<std::uint32_t>(4 * n);
  std::vector<split> tasks;
  for (std::uint32_t i = 0; i < n; ++i) tasks.push_back({cells.data(), i});
  rt.submit(tasks);
  rt.wait_all();
  EXPECT_EQ(rt.errors().size(), 0u);
  const auto all = contents(cells);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t kind = scramble(i) % 5, amounts[4] = {1, 1, 32, 128};
    for (std::uint32_t k = 0; k < 4; ++k)
      ASSERT_EQ(all[4 * i + k], k == kind ? amounts[k] : 0) << "task " << i << ", kind " << k;
  }
}

TEST_P(spawn, is_counted) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  rt->submit(tree{leaves.data(), 12});
  rt->submit(warp_tree{leaves.data(), 5});
  rt->submit(block_tree{leaves.data(), 4});
  rt->stop();
  const runtime_stats s = rt->stats();
  EXPECT_EQ(s.submitted, 3u);
  EXPECT_EQ(s.spawned, 8190u + 62u + 30u);
  EXPECT_EQ(s.tasks, s.submitted + s.spawned);
  EXPECT_EQ(s.rejected, 0u);
  EXPECT_GE(s.batches, 8190u / 32);
}

}  // namespace
}  // namespace grosr::testing
