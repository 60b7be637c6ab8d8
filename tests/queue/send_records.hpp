// A kernel whose lanes send numbered records, and the check of what the host got.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "grosr/queue/call_ring.hpp"
#include "grosr/simt/wait.hpp"
#include "support/scramble.hpp"

namespace grosr::queue {

GROSR_DEVICE inline record record_by(std::uint32_t who, std::uint32_t i) {
  record r;
  r.word[0] = who;
  r.word[1] = i;
  for (std::uint32_t k = 2; k < 3 * record_words; ++k)
    r.word[k] = testing::scramble(who * 7919 + i * 31 + k);
  for (std::uint32_t k = 0; k < record_words; ++k)
    r.part[k] = testing::scramble(who + i * 17 + k) & 0xffffff;
  return r;
}

enum class way { take, try_take, whole_warps, some_lanes, together };

inline constexpr way all_ways[] = {way::take, way::try_take, way::whole_warps, way::some_lanes,
                                   way::together};

// Lanes send one by one, diverged, or together.
struct send_records {
  call_ring_ref records;
  std::uint32_t each;
  way how;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    for (std::uint32_t i = 0, turn = 0; how == way::together ? turn < 32 * each : i < each;
         ++turn) {
      if (how == way::whole_warps) {
        std::uint64_t first = 0;
        if (simt::lane_id() == 0) first = records.take(simt::warp_size);
        first = simt::shuffle(simt::full_mask, first, 0);
        await_room(first + simt::lane_id());
        simt::sync_warp();
        records.write_all(simt::full_mask, first, record_by(self, i++));
      } else if (how == way::some_lanes) {
        // Half of the quads are whole; the others lack a lane, which then sends alone.
        const bool alone = simt::lane_id() % 8 == 5;
        const std::uint32_t mask = simt::ballot(simt::full_mask, !alone);
        std::uint64_t first = 0;
        if (simt::lane_id() == 0) first = records.take(simt::popcount(mask));
        first = simt::shuffle(simt::full_mask, first, 0);
        if (alone) first = records.take(1);
        await_room(alone ? first : first + simt::rank_in(mask, simt::lane_id()));
        if (alone)
          records.write(first, record_by(self, i));
        else
          records.write_all(mask, first, record_by(self, i));
        ++i;
        simt::sync_warp();
      } else if (how == way::together) {
        // Lanes take turns to lead: all of them, or three.
        const unsigned leader = turn % simt::warp_size;
        const std::uint32_t three = 7u << leader / 4 * 4;
        const std::uint32_t mask = turn / 32 % 2 == 0 || leader % 4 == 3 ? simt::full_mask : three;
        std::uint64_t ticket = 0;
        if (simt::lane_id() == leader) {
          ticket = records.take(1);
          await_room(ticket);
        }
        simt::sync_warp();
        if (mask >> simt::lane_id() & 1)
          records.write_together(mask, leader, ticket, record_by(self, i));
        if (simt::lane_id() == leader) ++i;
      } else if (testing::scramble(self + 1000 * turn) % 2 == 0) {
        std::uint64_t ticket = 0;
        if (how == way::take) {
          ticket = records.take(1);
          await_room(ticket);
        } else if (!records.try_take(1, ticket)) {
          simt::pause(turn % 16 + 1, "room for a record");
          continue;
        }
        records.write(ticket, record_by(self, i++));
      }
    }
  }

  GROSR_DEVICE void await_room(std::uint64_t ticket) const {
    simt::wait_until([&] { return records.has_room(ticket); }, simt::forever, nullptr,
                     "room for a record");
  }
};

inline void expect_in_order(const std::vector<record>& got, std::uint32_t producers,
                            std::uint32_t each) {
  std::vector<std::uint32_t> next(producers);
  for (const record& g : got) {
    ASSERT_LT(g.word[0], producers);
    ASSERT_EQ(g.word[1], next[g.word[0]]++) << "lane " << g.word[0];
    const record expected = record_by(g.word[0], g.word[1]);
    ASSERT_TRUE(std::equal(g.word, g.word + 3 * record_words, expected.word)) << "a torn record";
    ASSERT_TRUE(std::equal(g.part, g.part + record_words, expected.part)) << "a torn record";
  }
  for (std::uint32_t n : next) EXPECT_EQ(n, each);
}

}  // namespace grosr::queue
