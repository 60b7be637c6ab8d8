// Every record that a lane sends reaches the host, whole, and those of one lane in the order of its
// calls, however lanes take tickets; and taking them says when there is no room.
#include "grosr/queue/call_ring.hpp"

#include <algorithm>
#include <vector>

#include "queue/send_records.hpp"
#include "support/devices.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(call_ring_records);

void expect_delivery(device d, simt::shape grid, std::uint32_t capacity, std::uint32_t each,
                     way how) {
  call_ring ring(d, capacity);
  const std::uint32_t producers = grid.blocks * grid.threads;
  simt::stream s(d);
  simt::launch(s, grid, send_records{ring.ref(), each, how});
  std::vector<record> got;
  while (got.size() < producers * each) {
    const unsigned most = 1 + got.size() % 7;
    unsigned popped = 0;
    ring.pop_while([&](const record& r, std::uint64_t ticket) {
      EXPECT_EQ(ticket, got.size());
      got.push_back(r);
      return ++popped < most ? pop_result::more : pop_result::last;
    });
    if (popped == most || !ring.ready()) ring.give_credit();
  }
  s.wait();
  EXPECT_FALSE(ring.ready());
  EXPECT_EQ(ring.taken(), got.size());
  expect_in_order(got, producers, each);
}

TEST_P(call_ring_records, arrive_once_and_in_order) {
  const auto each = static_cast<std::uint32_t>(testing::scaled(20, 3));
  for (way how : all_ways) {
    expect_delivery(where(), {4, 64}, 64, each, how);
    expect_delivery(where(), {4, 128}, 1024, each, how);
  }
}

TEST_P(call_ring_records, arrive_when_laps_wrap) {
  // 8 bits of the lap: 32 places, more than 256 laps.
  const std::uint32_t each = 300;
  for (way how : all_ways) expect_delivery(where(), {1, 32}, 32, each, how);
}

struct try_group {
  call_ring_ref records;
  std::uint32_t count, tag;
  std::uint32_t* in;
  GROSR_DEVICE void operator()() const {
    std::uint64_t first = 0;
    std::uint32_t took = 0;
    if (simt::lane_id() == 0) took = records.try_take(count, first) ? 1 : 0;
    took = simt::shuffle(simt::full_mask, took, 0);
    first = simt::shuffle(simt::full_mask, first, 0);
    if (took && simt::lane_id() < count)
      records.write(first + simt::lane_id(), record_by(tag, simt::lane_id()));
    if (simt::lane_id() == 0) *in = took;
  }
};

TEST_P(call_ring_records, go_in_as_a_group_or_not_at_all) {
  call_ring ring(where(), 32);
  auto in = make<std::uint32_t>(1);
  auto sent = [&](std::uint32_t count, std::uint32_t tag) {
    run(1, 32, try_group{ring.ref(), count, tag, in.data()});
    return contents(in)[0] != 0;
  };
  std::vector<record> popped;
  const auto pop = [&](unsigned most) {
    popped.clear();
    ring.pop_while([&](const record& r, std::uint64_t) {
      popped.push_back(r);
      return popped.size() < most ? pop_result::more : pop_result::last;
    });
    return popped.size();
  };
  EXPECT_EQ(pop(1), 0u);
  EXPECT_TRUE(sent(20, 1));
  EXPECT_FALSE(sent(13, 2));
  EXPECT_TRUE(sent(12, 3));
  EXPECT_FALSE(sent(1, 4));
  ASSERT_EQ(pop(5), 5u);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(popped[i].word[0], 1u);
    EXPECT_EQ(popped[i].word[1], i);
  }
  EXPECT_FALSE(sent(1, 5)) << "without credit";
  EXPECT_EQ(ring.pop_while([](const record&, std::uint64_t) { return pop_result::left; }), 0u);
  EXPECT_TRUE(ring.ready()) << "what was left is there";
  ring.give_credit();
  EXPECT_FALSE(sent(6, 6));
  EXPECT_TRUE(sent(5, 7));
  std::vector<std::uint32_t> tags;
  EXPECT_EQ(pop(100), 32u);
  for (const record& r : popped) tags.push_back(r.word[0]);
  std::vector<std::uint32_t> expected(15, 1);
  expected.insert(expected.end(), 12, 3);
  expected.insert(expected.end(), 5, 7);
  EXPECT_EQ(tags, expected);
}

}  // namespace
}  // namespace grosr::queue
