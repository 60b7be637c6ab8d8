// Ingress and egress under seeded schedules: a lane plays the host, so that the schedule may stop
// it between any two words that it writes or reads.
#include "grosr/queue/egress.hpp"
#include "queue/consume_lines.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

struct write_and_consume {
  ingress* ring;
  consume_lines consume;
  void operator()() const {
    if (simt::block_id() != 0) return consume();
    if (simt::lane_id() != 0) return;
    for (std::uint32_t i = 0; i < consume.total;) {
      if (ring->has_room())
        ring->write(content_of(0, i++));
      else
        simt::pause(1, "room for a line");
    }
  }
};

TEST(bus_schedules, lose_no_line_to_the_device) {
  testing::for_seeds(
      1000,
      [] {
        constexpr std::uint32_t total = 30;
        ingress ring(device(), 8);
        std::uint32_t count = 0;
        std::vector<taken_line> log(total);
        simt::run(device(), {3, 32},
                  write_and_consume{&ring, {ring.ref(), total, &count, log.data()}});
        std::vector<std::uint32_t> seen(total);
        for (const taken_line& l : log) {
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
  egress* ring;
  egress_ref ref;
  std::uint32_t each;
  std::vector<line>* got;
  void operator()() const {
    if (simt::block_id() == 0) {
      if (simt::lane_id() != 0) return;
      while (got->size() < 2 * 5 * each) {
        line l;
        if (ring->try_pop(l))
          got->push_back(l);
        else
          simt::pause(1, "a line");
      }
      return;
    }
    const unsigned lane = simt::lane_id();
    if (lane >= 5) return;
    for (std::uint32_t i = 0; i < each;) {
      if (ref.try_push(simt::active_mask(), content_of((simt::block_id() - 1) * 5 + lane, i)))
        ++i;
      else
        simt::pause(1, "room for a line");
    }
  }
};

TEST(bus_schedules, lose_no_line_to_the_host) {
  testing::for_seeds(
      1000,
      [] {
        constexpr std::uint32_t each = 8;  // 80 lines through 32 places
        egress ring(device(), 32);
        std::vector<line> got;
        simt::run(device(), {3, 32}, send_and_read{&ring, ring.ref(), each, &got});
        std::uint32_t next[10] = {};
        for (const line& l : got) {
          ASSERT_LT(l.word[0], 10u);
          EXPECT_EQ(l.word[1], next[l.word[0]]++);
          const line expected = content_of(l.word[0], l.word[1]);
          EXPECT_TRUE(std::equal(l.word, l.word + line_content, expected.word));
        }
        for (std::uint32_t n : next) EXPECT_EQ(n, each);
      },
      1000);
}

}  // namespace
}  // namespace grosr::queue
