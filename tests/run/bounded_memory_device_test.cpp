// However little memory there is, nothing that is spawned is lost, and no more is taken.
#include "run/least_memory.hpp"
#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(bounded_memory);

template <class Runtime = test_runtime>
runtime_options least_options(device d) {
  runtime_options o;
  o.slots = 16;
  o.ring_capacity = 8;
  o.deque_capacity = 16;
  o.memory_limit = least_memory<Runtime>(d, o);
  return o;
}

TEST_P(bounded_memory, at_its_least_is_what_the_error_says) {
  runtime_options o = least_options(where());
  ASSERT_NE(o.memory_limit, 0u);
  EXPECT_LE(start(o)->stats().memory, o.memory_limit);
  o.memory_limit -= 1024;
  EXPECT_EQ(error_of([&] { start(o); }).code(), errc::invalid_option);
}

TEST_P(bounded_memory, is_never_exceeded) {
  for (std::size_t mib : {4u, 16u, 100u}) {
    runtime_options o;
    o.memory_limit = mib << 20;
    if (o.memory_limit < least_memory<test_runtime>(where(), o)) continue;
    auto rt = start(o);
    EXPECT_LE(rt->stats().memory, o.memory_limit);
    EXPECT_GE(rt->stats().memory, o.memory_limit / 2);
  }
}

TEST_P(bounded_memory, loses_nothing_of_trees) {
  const runtime_options o = least_options(where());
  auto rt = start(o);
  auto& leaves = keep<std::uint32_t>(4);
  const std::uint32_t depth = scaled_depth(16, 13);
  rt->submit(tree{leaves.data(), depth});
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], 1u << depth);
  rt->submit(large_tree{leaves.data() + 1, depth - 1, {}});
  for (int i = 0; i < 8; ++i) rt->submit(tree{leaves.data() + 2, depth - 4});
  rt->wait_all();
  EXPECT_EQ(contents(leaves),
            (std::vector<std::uint32_t>{1u << depth, 1u << (depth - 1), 8u << (depth - 4), 0}));
  rt->stop();
  EXPECT_EQ(rt->stats().rejected, 0u);
  EXPECT_LE(rt->stats().memory, o.memory_limit);
}

/// A tree of tasks that keep much on the stack, which a few of them would fill inside each other.
struct deep_tree {
  static constexpr unsigned words = 400;
  std::uint32_t* leaves;
  std::uint32_t depth;
  GROSR_DEVICE int operator()(auto& context) const {
    volatile std::uint32_t kept[words];
    for (unsigned i = 0; i < words; ++i) kept[i] = i ^ depth;
    if (depth == 0) add_one(leaves);
    for (unsigned child = 0; depth != 0 && child < 2; ++child)
      context.spawn(deep_tree{leaves, depth - 1});
    for (unsigned i = 0; i < words; ++i)
      if (kept[i] != (i ^ depth)) return -EFAULT;
    return 0;
  }
};

TEST_P(bounded_memory, loses_nothing_of_trees_with_much_on_the_stack) {
  using deep_runtime = runtime<deep_tree>;
  deep_runtime rt(where(), least_options<deep_runtime>(where()));
  auto& leaves = keep<std::uint32_t>(1);
  const std::uint32_t depth = scaled_depth(16, 12);
  rt.submit(deep_tree{leaves.data(), depth});
  rt.stop();
  EXPECT_EQ(contents(leaves)[0], 1u << depth);
  EXPECT_EQ(rt.stats().failed, 0u);
}

/// Never spawns.
struct adder {
  std::uint32_t* sum;
  GROSR_DEVICE void operator()(auto&) const { add_one(sum); }
};
struct spawns_adder {
  std::uint32_t* sum;
  GROSR_DEVICE void operator()(auto& context) const { context.spawn(adder{sum}); }
};

TEST_P(bounded_memory, is_little_where_no_task_spawns) {
  runtime_options o;
  runtime<adder> small(where(), o);
  runtime<adder, spawns_adder> large(where(), o);
  const runtime_stats s = small.stats(), l = large.stats();
  EXPECT_LT(s.memory, std::size_t{32} << 20);
  EXPECT_LT(s.host_memory, std::size_t{10} << 20);
  EXPECT_GT(l.memory, o.memory_limit / 8 * 7);
  EXPECT_GT(l.host_memory, o.overflow_limit);
  EXPECT_EQ(s.stack_memory != 0, where().is_cuda());
  // That is enough, also for more than there is room for at a time.
  auto& sums = keep<std::uint32_t>(2);
  const std::size_t n = scaled(1'000'000, 20'000);
  for (const priority p : {priority::low, priority::normal, priority::high})
    small.submit(std::vector<adder>(n, adder{sums.data()}), p);
  for (unsigned i = 0; i < 1'000; ++i) small.submit(adder{sums.data()});
  large.submit(std::vector<spawns_adder>(n, spawns_adder{sums.data() + 1}));
  small.stop();
  large.stop();
  EXPECT_EQ(contents(sums), (std::vector<std::uint32_t>{static_cast<std::uint32_t>(3 * n + 1'000),
                                                        static_cast<std::uint32_t>(n)}));
}

TEST_P(bounded_memory, loses_nothing_of_trees_of_warps_and_blocks) {
  auto rt = start(least_options(where()));
  auto& leaves = keep<std::uint32_t>(3);
  const std::uint32_t depth = scaled_depth(12, 10);
  rt->submit(warp_tree{leaves.data(), depth});
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], 1u << depth);
  rt->submit(block_tree{leaves.data() + 1, depth - 2});
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[1], 1u << (depth - 2));
  const bool deep = scale() >= 1;
  rt->submit(mixed{leaves.data() + 2, deep ? 7u : 6u});
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[2], deep ? 2187u : 729u);
  rt->stop();
  EXPECT_EQ(rt->stats().rejected, 0u);
}

// One task starts more than there is room for.
TEST_P(bounded_memory, loses_nothing_of_a_wide_fan) {
  auto rt = start(least_options(where()));
  constexpr std::uint32_t n = 50'000;
  auto& cells = keep<std::uint32_t>(n);
  rt->submit(fan_out{cells.data(), 0, n, 0});
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
  rt->stop();
  EXPECT_EQ(rt->stats().rejected, 0u);
}

TEST_P(bounded_memory, loses_nothing_of_many_fans) {
  auto rt = start(least_options(where()));
  constexpr std::uint32_t parents = 500, each = 100;
  auto& cells = keep<std::uint32_t>(parents * each);
  std::vector<fan_out> tasks;
  for (std::uint32_t i = 0; i < parents; ++i)
    tasks.push_back({cells.data(), i * each, each, i % 2});
  rt->submit(tasks);
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
  rt->stop();
  EXPECT_EQ(rt->stats().rejected, 0u);
}

// Children wider than the parent cannot run inside it: they wait for room.
struct wide_fan {
  std::uint32_t* cells;
  std::uint32_t count, blocks;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = 0; i < count; ++i) {
      if (blocks)
        context.spawn(block_mark{cells, i});
      else
        context.spawn(warp_mark{cells, i});
    }
  }
};

TEST_P(bounded_memory, loses_nothing_of_a_fan_of_wider_tasks) {
  using fan_runtime = runtime<wide_fan, warp_mark, block_mark>;
  fan_runtime rt(where(), least_options<fan_runtime>(where()));
  // There is room for about a thousand warp tasks, and half as many block tasks.
  const auto n = static_cast<std::uint32_t>(scaled(8000, 2500));
  auto& cells = keep<std::uint32_t>(n);
  auto& blocks = keep<std::uint32_t>(n / 4);
  rt.submit(wide_fan{cells.data(), n, 0});
  rt.wait_all();
  EXPECT_TRUE(all_are(cells, 32u));
  rt.submit(wide_fan{blocks.data(), n / 4, 1});
  rt.wait_all();
  EXPECT_TRUE(all_are(blocks, 128u));
  rt.stop();
  EXPECT_EQ(rt.stats().rejected, 0u);
  EXPECT_EQ(rt.stats().failed, 0u);
}

struct counts_refusals {
  std::uint32_t* cells;
  std::uint32_t* refused;
  std::uint32_t count;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = 0; i < count; ++i)
      if (!context.try_spawn(mark<16>{cells, i, {i * 31}})) add_one(refused);
  }
};

TEST_P(bounded_memory, makes_try_spawn_say_so) {
  using refusing_runtime = runtime<counts_refusals, mark<16>>;
  refusing_runtime rt(where(), least_options<refusing_runtime>(where()));
  constexpr std::uint32_t n = 200'000;
  auto& cells = keep<std::uint32_t>(n);
  auto& refused = keep<std::uint32_t>(1);
  rt.submit(counts_refusals{cells.data(), refused.data(), n});
  rt.wait_all();
  std::uint64_t ran = 0;
  for (std::uint32_t c : contents(cells)) {
    ASSERT_LE(c, 1u);
    ran += c;
  }
  EXPECT_EQ(ran + contents(refused)[0], n);
  EXPECT_GE(ran, 1u);
}

}  // namespace
}  // namespace grosr::testing
