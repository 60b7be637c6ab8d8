// With the smallest queues that there can be, everything still runs exactly once: refs spill,
// submitters wait.
#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(small_queues);

runtime_options smallest() {
  runtime_options o = small_options();
  o.deque_capacity = 2;
  o.slots = 4;
  o.ring_capacity = 8;
  return o;
}

TEST_P(small_queues, run_trees) {
  auto rt = start(smallest());
  auto& leaves = keep<std::uint32_t>(4);
  const std::uint32_t depth = scaled_depth(14, 11);
  const bool deep = scale() >= 1;
  rt->submit(tree{leaves.data(), depth});
  rt->submit(warp_tree{leaves.data() + 1, depth - 4});
  rt->submit(block_tree{leaves.data() + 2, depth - 6});
  rt->submit(mixed{leaves.data() + 3, deep ? 7u : 6u});
  rt->wait_all();
  EXPECT_EQ(contents(leaves), (std::vector<std::uint32_t>{1u << depth, 1u << (depth - 4),
                                                          1u << (depth - 6), deep ? 2187u : 729u}));
  rt->stop();
  EXPECT_EQ(rt->stats().rejected, 0u);
}

TEST_P(small_queues, spill_what_one_task_starts) {
  auto rt = start(smallest());
  constexpr std::uint32_t n = 20'000;
  auto& cells = keep<std::uint32_t>(n);
  rt->submit(fan_out{cells.data(), 0, n, 1});
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 1u));
  rt->stop();
  // On a GPU thieves may be faster than the deque is filled.
  if (!where().is_cuda()) {
    EXPECT_GE(rt->stats().spilled, 1u);
  }
}

TEST_P(small_queues, make_submitters_wait) {
  auto rt = start(smallest());
  const auto n = static_cast<std::uint32_t>(scaled(3000, 300));
  auto& cells = keep<std::uint32_t>(n);
  std::vector<mark<24>> tasks;
  for (std::uint32_t i = 0; i < n; ++i) tasks.push_back(mark<24>::make(cells.data(), i));
  const ticket t = rt->submit(tasks);
  for (std::uint32_t i = 0; i < n; ++i) rt->submit(tasks[i], static_cast<priority>(i % 4));
  t.wait();
  rt->wait_all();
  EXPECT_TRUE(all_are(cells, 2u));
}

TEST_P(small_queues, survive_parking) {
  runtime_options o = smallest();
  o.idle_timeout = std::chrono::milliseconds(1);
  auto rt = start(o);
  auto& leaves = keep<std::uint32_t>(1);
  const auto rounds = static_cast<std::uint32_t>(scaled(30, 5));
  for (std::uint32_t i = 0; i < rounds; ++i) {
    rt->submit(tree{leaves.data(), 10});
    if (i % 3 == 0) rt->park();
    if (i % 5 == 0) rt->wait_all();
  }
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], rounds * 1024);
}

}  // namespace
}  // namespace grosr::testing
