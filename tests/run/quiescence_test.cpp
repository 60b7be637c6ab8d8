// wait_all() returns when everything has run that was submitted before it and everything that this
// spawned, and not a moment earlier, in every schedule of the workers.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "grosr/run/runtime.hpp"
#include "grosr/simt/atomic.hpp"
#include "run/least_memory.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

constexpr std::uint32_t children_of(std::uint32_t id, std::uint32_t depth) {
  return depth == 0 ? 0 : scramble(id) % 4;
}

/// A random tree: what its nodes start depends on their ids alone. Every node adds 1 as its last
/// act.
struct node {
  std::uint32_t* ran;
  std::uint32_t id, depth;
  GROSR_DEVICE void operator()(auto& context) const;
};
struct warp_node {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* ran;
  std::uint32_t id, depth;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == id % 32) node{ran, id, depth}(context);
  }
};
struct block_node {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* ran;
  std::uint32_t id, depth;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == id % 128) node{ran, id, depth}(context);
    context.sync();
  }
};
GROSR_DEVICE void node::operator()(auto& context) const {
  for (std::uint32_t k = 0; k < children_of(id, depth); ++k) {
    const std::uint32_t child = 4 * id + k + 1;
    const auto level = static_cast<priority>(scramble(child + 7) % 2);
    switch (scramble(child + 1) % 8) {
      case 0:
        context.spawn(warp_node{ran, child, depth - 1}, level);
        break;
      case 1:
        context.spawn(block_node{ran, child, depth - 1}, level);
        break;
      default:
        context.spawn(node{ran, child, depth - 1}, level);
    }
  }
  simt::atomic_ref<std::uint32_t, simt::scope::system>(*ran).fetch_add(1, simt::release);
}

std::uint32_t nodes_of(std::uint32_t id, std::uint32_t depth) {
  std::uint32_t n = 1;
  for (std::uint32_t k = 0; k < children_of(id, depth); ++k)
    n += nodes_of(4 * id + k + 1, depth - 1);
  return n;
}

using node_runtime = runtime<node, warp_node, block_node>;

runtime_options options_of(std::uint32_t round) {
  runtime_options o;
  o.sms = 1 + round % 2;
  o.slots = round % 3 == 0 ? 4 : 64;
  o.ring_capacity = 8;
  o.deque_capacity = round % 4 == 0 ? 2 : 16;
  o.idle_timeout = std::chrono::microseconds(round % 5 == 0 ? 200 : 20'000);
  o.memory_limit = round % 7 == 0 ? least_memory<node_runtime>(device(), o) : std::size_t{16} << 20;
  return o;
}

std::uint32_t now(std::uint32_t& word) {
  return simt::atomic_ref<std::uint32_t, simt::scope::system>(word).load(simt::acquire);
}

void expect_quiet(std::uint32_t round, std::uint32_t trees) {
  std::uint32_t ran = 0, expected = 0;
  node_runtime rt(device(), options_of(round));
  for (std::uint32_t i = 0; i < trees; ++i) {
    const std::uint32_t id = scramble(round * 100 + i) % 100'000, depth = 1 + id % 6;
    expected += nodes_of(id, depth);
    rt.submit(node{&ran, id, depth}, i % 2 ? priority::low : priority::normal);
    if (i % 3 == 2) {
      rt.wait_all();
      ASSERT_EQ(now(ran), expected) << "after " << i + 1 << " trees of round " << round;
    }
    if (i % 5 == 4) rt.park();
  }
  rt.wait_all();
  ASSERT_EQ(now(ran), expected);
}

TEST(quiescence, is_exact) {
  for (std::uint32_t round = 0; round < scaled(100, 10); ++round) expect_quiet(round, 12);
}

TEST(quiescence, is_exact_in_every_schedule) {
  std::uint32_t round = 0;
  for_seeds(100, [&] { expect_quiet(round++, 6); });
}

// Others submit meanwhile: each thread's own trees are over when its wait_all() returns.
void expect_own(std::uint32_t round, std::uint32_t each) {
  std::uint32_t ran[3] = {};
  node_runtime rt(device(), options_of(round));
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      std::uint32_t expected = 0;
      for (std::uint32_t i = 0; i < each; ++i) {
        const std::uint32_t id = scramble(round * 1000 + t * 100 + i) % 100'000, depth = 1 + id % 5;
        expected += nodes_of(id, depth);
        rt.submit(node{&ran[t], id, depth});
        if (scramble(id) % 2 == 0) {
          rt.wait_all();
          ASSERT_EQ(now(ran[t]), expected) << "thread " << t << ", tree " << i;
        }
      }
    });
  for (auto& t : threads) t.join();
}

TEST(quiescence, is_exact_for_every_thread) {
  for (std::uint32_t round = 0; round < scaled(50, 5); ++round) expect_own(round, 12);
}

TEST(quiescence, is_exact_for_every_thread_in_every_schedule) {
  std::uint32_t round = 0;
  for_seeds(50, [&] { expect_own(round++, 5); });
}

}  // namespace
}  // namespace grosr::testing
