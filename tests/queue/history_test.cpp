// The checkers of histories tell good ones from bad ones, and agree where both apply.
#include "queue/history.hpp"

#include <random>

namespace grosr::queue {
namespace {

using history = std::vector<operation>;

TEST(history, in_order_is_linearizable) {
  const history h = {
      {act::push, 1, 0, 1}, {act::push, 2, 2, 3}, {act::pop, 1, 4, 5}, {act::pop, 2, 6, 7}};
  EXPECT_TRUE(linearizable(h, fifo_model{2}));
  EXPECT_EQ(fifo_violation(h), "");
}

TEST(history, overlapping_pushes_may_come_in_any_order) {
  const history h = {
      {act::push, 1, 0, 5}, {act::push, 2, 1, 4}, {act::pop, 2, 6, 7}, {act::pop, 1, 8, 9}};
  EXPECT_TRUE(linearizable(h, fifo_model{2}));
  EXPECT_EQ(fifo_violation(h), "");
}

TEST(history, a_pop_may_overlap_its_push) {
  const history h = {{act::push, 1, 0, 9}, {act::pop, 1, 1, 8}};
  EXPECT_TRUE(linearizable(h, fifo_model{2}));
  EXPECT_EQ(fifo_violation(h), "");
}

TEST(history, swapped_values_are_not) {
  const history h = {
      {act::push, 1, 0, 1}, {act::push, 2, 2, 3}, {act::pop, 2, 4, 5}, {act::pop, 1, 6, 7}};
  EXPECT_FALSE(linearizable(h, fifo_model{2}));
  EXPECT_NE(fifo_violation(h), "");
}

TEST(history, a_value_that_was_skipped_is_not) {
  const history h = {{act::push, 1, 0, 1}, {act::push, 2, 2, 3}, {act::pop, 2, 4, 5}};
  EXPECT_FALSE(linearizable(h, fifo_model{2}));
  EXPECT_NE(fifo_violation(h), "");
}

TEST(history, a_duplicate_is_not) {
  const history h = {{act::push, 1, 0, 1}, {act::pop, 1, 2, 5}, {act::pop, 1, 3, 4}};
  EXPECT_FALSE(linearizable(h, fifo_model{2}));
  EXPECT_NE(fifo_violation(h), "");
}

TEST(history, more_than_the_capacity_is_not) {
  const history h = {
      {act::push, 1, 0, 1}, {act::push, 2, 2, 3}, {act::push, 3, 4, 5}, {act::pop, 1, 6, 7}};
  EXPECT_FALSE(linearizable(h, fifo_model{2}));
  EXPECT_TRUE(linearizable(h, fifo_model{3}));
}

TEST(history, of_a_deque_has_two_ends) {
  const history h = {{act::push, 1, 0, 1},
                     {act::push, 2, 2, 3},
                     {act::steal, 1, 4, 5},
                     {act::pop, 2, 6, 7},
                     {act::pop_empty, 0, 8, 9}};
  EXPECT_TRUE(linearizable(h, deque_model{2}));
  history wrong = h;
  wrong[2].value = 2;
  wrong[3].value = 1;
  EXPECT_FALSE(linearizable(wrong, deque_model{2}));
  wrong = h;
  wrong[4].began = 0;  // it overlaps everything, and the deque was empty in the beginning
  EXPECT_TRUE(linearizable(wrong, deque_model{2}));
  wrong[4] = {act::pop_empty, 0, 4, 6};
  wrong[3] = {act::pop, 2, 7, 8};
  EXPECT_FALSE(linearizable(wrong, deque_model{2}));
}

TEST(history, of_a_full_deque_refuses) {
  const history h = {{act::push, 1, 0, 1}, {act::push_full, 2, 2, 3}};
  EXPECT_TRUE(linearizable(h, deque_model{1}));
  EXPECT_FALSE(linearizable(h, deque_model{2}));
}

// Random histories, some made illegal by a swap: the search and the rules must agree.
TEST(history, checkers_agree) {
  std::mt19937 random(7);
  unsigned good = 0, bad = 0;
  for (int again = 0; again < 2000; ++again) {
    history h;
    for (std::uint32_t v = 1; v <= 5; ++v) {
      std::uint32_t moments[4];
      for (auto& m : moments) m = random() % 24;
      h.push_back(
          {act::push, v, std::min(moments[0], moments[1]), std::max(moments[0], moments[1])});
      if (random() % 4 != 0)
        h.push_back({act::pop, v, std::min(moments[2], moments[3]) + 8,
                     std::max(moments[2], moments[3]) + 8});
    }
    const bool rules = fifo_violation(h).empty();
    ASSERT_EQ(rules, linearizable(h, fifo_model{64})) << text_of(h);
    ++(rules ? good : bad);
  }
  EXPECT_GE(good, 100u);
  EXPECT_GE(bad, 100u);
}

}  // namespace
}  // namespace grosr::queue
