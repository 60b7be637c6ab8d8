// Submission and call rings under seeded schedules: a lane plays the host, so that the schedule may
// stop it between any two words that it writes or reads.
#include "grosr/queue/call_ring.hpp"
#include "queue/consume_packets.hpp"
#include "queue/send_records.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

struct write_and_consume {
  submission_ring* ring;
  consume_packets consume;
  void operator()() const {
    if (simt::block_id() != 0) return consume();
    if (simt::lane_id() != 0) return;
    for (std::uint32_t i = 0; i < consume.total;) {
      if (ring->has_room())
        ring->write(content_of(0, i++));
      else
        simt::pause(1, "room for a packet");
    }
  }
};

TEST(bus_schedules, lose_no_packet_to_the_device) {
  testing::for_seeds(
      1000,
      [] {
        constexpr std::uint32_t total = 30;
        submission_ring ring(device(), 8);
        std::uint32_t count = 0;
        std::vector<taken_packet> log(total);
        simt::run(device(), {3, 32},
                  write_and_consume{&ring, {ring.ref(), total, &count, log.data()}});
        std::vector<std::uint32_t> seen(total);
        for (const taken_packet& l : log) {
          EXPECT_LT(l.number, total);
          EXPECT_EQ(l.i, l.number);
          EXPECT_EQ(l.whole, 1u);
          ++seen[l.number % total];
        }
        EXPECT_EQ(seen, std::vector<std::uint32_t>(total, 1));
      },
      1000);
}

struct send_and_read {
  call_ring* ring;
  send_records send;
  std::vector<record>* got;
  void operator()() const {
    if (simt::block_id() == 0) {
      if (simt::lane_id() != 0) return;
      while (got->size() < 2 * 32 * send.each) {
        const unsigned popped = ring->pop_while([&](const record& r, std::uint64_t) {
          got->push_back(r);
          return got->size() % 3 != 0 ? pop_result::more : pop_result::last;
        });
        ring->give_credit();
        if (popped == 0) simt::pause(1, "a record");
      }
      return;
    }
    send();
  }
};

TEST(bus_schedules, lose_no_record_to_the_host) {
  testing::for_seeds(
      1000,
      [] {
        for (way how : all_ways) {
          constexpr std::uint32_t each = 3;  // 192 records through 32 places
          call_ring ring(device(), 32);
          std::vector<record> got;
          simt::run(device(), {3, 32}, send_and_read{&ring, {ring.ref(), each, how}, &got});
          std::uint32_t next[96] = {};
          for (const record& r : got) {
            ASSERT_LT(r.word[0], 96u);
            EXPECT_EQ(r.word[1], next[r.word[0]]++);
            const record expected = record_by(r.word[0], r.word[1]);
            EXPECT_TRUE(std::equal(r.word, r.word + 3 * record_words, expected.word));
          }
          for (std::uint32_t n = 32; n < 96; ++n) EXPECT_EQ(next[n], each);
        }
      },
      1000);
}

}  // namespace
}  // namespace grosr::queue
