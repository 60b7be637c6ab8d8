// Every line that a lane sends reaches the host, whole, and those of one lane in the order of its
// calls; a group goes in together or not at all.
#include "grosr/queue/egress.hpp"

#include <algorithm>
#include <vector>

#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

using testing::scramble;

GROSR_DEVICE_SUITE(egress_lines);

GROSR_DEVICE line content_of(std::uint32_t who, std::uint32_t i) {
  line l;
  l.word[0] = who;
  l.word[1] = i;
  for (std::uint32_t k = 2; k < line_content; ++k) l.word[k] = scramble(who * 7919 + i * 31 + k);
  return l;
}

// Lanes that diverge send in groups as they happen to be together.
struct send {
  egress_ref lines;
  std::uint32_t each;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    for (std::uint32_t i = 0, turn = 0; i < each; ++turn) {
      bool in = false;
      if (scramble(self + 1000 * turn) % 2 == 0)
        in = lines.try_push(simt::active_mask(), content_of(self, i));
      if (in) ++i;
      if (!in) simt::pause(turn % 16, "room for a line");
    }
  }
};

void expect_delivery(device d, simt::shape grid, std::uint32_t capacity, std::uint32_t each) {
  egress ring(d, capacity);
  const std::uint32_t producers = grid.blocks * grid.threads;
  simt::stream s(d);
  simt::launch(s, grid, send{ring.ref(), each});
  std::vector<line> got;
  while (got.size() < producers * each) {
    line l;
    if (ring.try_pop(l)) got.push_back(l);
  }
  s.wait();
  line l;
  EXPECT_FALSE(ring.try_pop(l));
  std::vector<std::uint32_t> next(producers);
  for (const line& g : got) {
    ASSERT_LT(g.word[0], producers);
    ASSERT_EQ(g.word[1], next[g.word[0]]++) << "lane " << g.word[0];
    const line expected = content_of(g.word[0], g.word[1]);
    ASSERT_TRUE(std::equal(g.word, g.word + line_content, expected.word)) << "a torn line";
  }
}

TEST_P(egress_lines, arrive_once_and_in_order) {
  const auto each = static_cast<std::uint32_t>(testing::scaled(20, 3));
  expect_delivery(where(), {4, 64}, 32, each);
  expect_delivery(where(), {4, 128}, 1024, each);
}

TEST_P(egress_lines, arrive_over_many_laps) {
  expect_delivery(where(), {1, 32}, 32, static_cast<std::uint32_t>(testing::scaled(200, 20)));
}

struct send_group {
  egress_ref lines;
  std::uint32_t mask, tag;
  std::uint32_t* in;
  GROSR_DEVICE void operator()() const {
    bool mine = false;
    if (mask >> simt::lane_id() & 1) mine = lines.try_push(mask, content_of(tag, simt::lane_id()));
    const std::uint32_t votes = simt::ballot(simt::full_mask, mine);
    if (simt::lane_id() == 0) *in = votes;
  }
};

TEST_P(egress_lines, go_in_as_a_group_or_not_at_all) {
  egress ring(where(), 32);
  auto in = make<std::uint32_t>(1);
  auto sent = [&](std::uint32_t mask, std::uint32_t tag) {
    run(1, 32, send_group{ring.ref(), mask, tag, in.data()});
    return contents(in)[0];
  };
  line l;
  EXPECT_FALSE(ring.try_pop(l));
  EXPECT_EQ(sent(0x000fffffu, 1), 0x000fffffu);
  EXPECT_EQ(sent(0xfff00001u, 2), 0u);  // 13 do not fit
  EXPECT_EQ(sent(0xfff00000u, 3), 0xfff00000u);
  EXPECT_EQ(sent(0x00000010u, 4), 0u);  // full
  for (std::uint32_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(ring.try_pop(l));
    EXPECT_EQ(l.word[0], 1u);
    EXPECT_EQ(l.word[1], i);
  }
  EXPECT_EQ(sent(0x0000003fu, 5), 0u);
  EXPECT_EQ(sent(0x0000001fu, 6), 0x0000001fu);
  std::vector<std::uint32_t> tags;
  while (ring.try_pop(l)) tags.push_back(l.word[0]);
  std::vector<std::uint32_t> expected(15, 1);
  expected.insert(expected.end(), 12, 3);
  expected.insert(expected.end(), 5, 6);
  EXPECT_EQ(tags, expected);
}

}  // namespace
}  // namespace grosr::queue
