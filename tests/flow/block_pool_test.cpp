// Memory for blocks goes back to whoever had it, and to others where there is no other.
#include "flow/block_pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace grosr::flow {
namespace {

constexpr std::size_t bytes = 1000, rounded = 1024;

/// Gives back in the end what a test has not.
struct block_pools : ::testing::Test {
  ~block_pools() override {
    for (const auto& [data, b] : taken) pool.give(b);
  }
  block_buffer take(std::uint64_t home = 0) {
    const block_buffer b = pool.take(bytes, home);
    taken[b.data] = b;
    return b;
  }
  void give(const block_buffer& b) {
    taken.erase(b.data);
    pool.give(b);
  }

  block_pool pool{device(), simt::space::device};
  std::map<void*, block_buffer> taken;
};

TEST_F(block_pools, give_what_was_given_back_first) {
  const block_buffer a = take(), b = take();
  give(b);
  give(a);
  EXPECT_EQ(take().data, b.data);
  EXPECT_EQ(pool.bytes(), 2 * rounded);
  EXPECT_EQ(pool.idle(), 1u);
}

TEST_F(block_pools, give_a_home_the_same_again) {
  std::vector<block_buffer> all;
  for (std::uint64_t home = 1; home <= 5; ++home) all.push_back(take(home));
  for (const std::size_t i : {3, 0, 4, 2, 1}) give(all[i]);
  for (std::uint64_t home = 1; home <= 5; ++home) EXPECT_EQ(take(home).data, all[home - 1].data);
  EXPECT_EQ(pool.bytes(), 5 * rounded);
}

// Those without a home are taken first, then those of others, before there are more.
TEST_F(block_pools, take_from_homes_rather_than_have_more) {
  const block_buffer at_home = take(1), other = take();
  give(at_home);
  give(other);
  const block_buffer first = take(), second = take(2);
  EXPECT_EQ(first.data, other.data);
  EXPECT_EQ(second.data, at_home.data);
  EXPECT_EQ(second.home, 2u);
  EXPECT_EQ(pool.bytes(), 2 * rounded);
  give(second);
  EXPECT_EQ(take(2).data, at_home.data);
}

// Two that were taken for one home: one of them is nobody's when both are back.
TEST_F(block_pools, have_one_at_a_home) {
  const block_buffer a = take(1), b = take(1);
  give(a);
  give(b);
  EXPECT_EQ(pool.idle(), 2u);
  EXPECT_EQ(take().data, b.data);
  EXPECT_EQ(take(1).data, a.data);
}

TEST_F(block_pools, count_those_at_home_as_idle) {
  pool.reserve(bytes, 3);
  EXPECT_EQ(pool.bytes(), 3 * rounded);
  std::vector<block_buffer> all;
  for (std::uint64_t home = 1; home <= 3; ++home) all.push_back(take(home));
  EXPECT_EQ(pool.bytes(), 3 * rounded);
  for (const block_buffer& b : all) give(b);
  pool.reserve(bytes, 1);  // another one: those that are there were promised
  EXPECT_EQ(pool.bytes(), 4 * rounded);
  pool.unreserve(bytes, 2);
  EXPECT_EQ(pool.bytes(), 2 * rounded);
  pool.unreserve(bytes, 2);
  EXPECT_EQ(pool.bytes(), 0u);
  EXPECT_EQ(pool.idle(), 0u);
}

}  // namespace
}  // namespace grosr::flow
