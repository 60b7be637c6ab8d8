// A ring that nobody else uses answers exactly: what fits goes in, the first of the mask first, and
// what is there comes out. Counters may wrap.
#include "grosr/queue/ring.hpp"
#include "support/devices.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(ring_alone);

constexpr std::uint32_t capacity = 16;

struct answers {
  std::uint32_t pushed, popped, ready, laid, got, empty;
  std::uint32_t value[32];
};

// One warp. The odd lanes push, then all lanes pop; then one lane uses the forms for many values.
struct fill_and_drain {
  ring_ref<std::uint32_t> ring;
  std::uint32_t rounds;
  answers* out;

  GROSR_DEVICE void operator()() const {
    const unsigned lane = simt::lane_id();
    for (std::uint32_t r = 0; r < rounds; ++r) {
      answers& a = out[r];
      bool in = false;
      if (lane % 2 == 1) in = ring.try_push(0xaaaaaaaau, r * 100 + lane);
      simt::sync_warp();
      in |= ring.try_push(simt::full_mask, r * 100 + 50 + lane);
      const std::uint32_t pushed = simt::ballot(simt::full_mask, in);
      const std::uint32_t ready = ring.ready();
      std::uint32_t value = 0;
      const bool got = ring.try_pop(simt::full_mask, value);
      a.value[lane] = got ? value : ~0u;
      const std::uint32_t popped = simt::ballot(simt::full_mask, got);
      if (lane == 0) {
        a.pushed = pushed;
        a.ready = ready;
        a.popped = popped;
        std::uint32_t many[capacity + 5];
        for (std::uint32_t i = 0; i < capacity + 5; ++i) many[i] = r * 1000 + i;
        a.laid = ring.try_push_n(many, 11);
        a.laid = a.laid * 100 + ring.try_push_n(many + 11, 10);
        for (auto& m : many) m = 0;
        a.got = ring.try_pop_n(many, 3);
        a.got = a.got * 100 + ring.try_pop_n(many + 3, capacity + 2);
        for (std::uint32_t i = 0; i < capacity; ++i)
          if (many[i] != r * 1000 + i) a.got = 12345;
        a.empty = ring.try_pop_n(many, 1);
      }
      simt::sync_warp();
    }
  }
};

void expect_exact(const std::vector<answers>& all) {
  for (std::uint32_t r = 0; r < all.size(); ++r) {
    const answers& a = all[r];
    // 16 odd lanes fill the ring: the second push finds no room.
    ASSERT_EQ(a.pushed, 0xaaaaaaaau) << "round " << r;
    ASSERT_EQ(a.ready, capacity);
    ASSERT_EQ(a.popped, 0xffffu);
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      ASSERT_EQ(a.value[lane], lane < capacity ? r * 100 + 2 * lane + 1 : ~0u);
    ASSERT_EQ(a.laid, 11u * 100 + 5);
    ASSERT_EQ(a.got, 3u * 100 + 13);
    ASSERT_EQ(a.empty, 0u);
  }
}

TEST_P(ring_alone, answers_exactly_over_many_laps) {
  ring<std::uint32_t> r(where(), capacity);
  auto out = make<answers>(500);
  run(1, 32, fill_and_drain{r.ref(), 500, out.data()});
  expect_exact(contents(out));
}

// A ring as it stands after nearly 2^32 values went through it.
TEST_P(ring_alone, goes_on_when_its_tickets_wrap) {
  const std::uint32_t ticket = 0u - 4 * capacity, lap = ticket / capacity;
  auto control = make<ring_control>(1);
  auto sequence = make<std::uint32_t>(capacity);
  auto data = make<std::uint32_t>(capacity);
  auto out = make<answers>(20);
  const ring_control now{0, 0, ticket, ticket};
  control.copy_from({&now, 1});
  const std::vector<std::uint32_t> cells(capacity, 2 * lap);  // free for that lap
  sequence.copy_from(cells);
  run(1, 32,
      fill_and_drain{{control.data(), sequence.data(), data.data(), capacity}, 20, out.data()});
  expect_exact(contents(out));
}

// Groups push parts of a ring that has room for some of them only: the first of the mask get it.
struct push_some {
  ring_ref<std::uint32_t> ring;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = simt::lane_id();
    if (lane < 10) ring.try_push(0x3ff, lane);
    simt::sync_warp();
    bool in = false;
    if (lane >= 20) in = ring.try_push(0xfff00000u, lane);
    const std::uint32_t who = simt::ballot(simt::full_mask, in);
    std::uint32_t value = 0;
    const bool got = ring.try_pop(simt::full_mask, value);
    out[lane] = got ? value : ~0u;
    if (lane == 0) out[32] = who;
  }
};

TEST_P(ring_alone, gives_room_to_the_first_of_the_mask) {
  ring<std::uint32_t> r(where(), capacity);
  auto out = make<std::uint32_t>(33);
  run(1, 32, push_some{r.ref(), out.data()});
  const auto all = contents(out);
  EXPECT_EQ(all[32], 0x03f00000u);
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(all[i], i < 10 ? i : i < 16 ? i + 10 : ~0u);
}

struct drain {
  ring_ref<std::uint32_t> ring;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    std::uint32_t value = 0;
    const bool got = ring.try_pop(simt::full_mask, value);
    out[simt::lane_id()] = got ? value : ~0u;
    // It is an ordinary ring then.
    ring.try_push(simt::full_mask, simt::lane_id());
    ring.try_pop(simt::full_mask, value);
    out[32 + simt::lane_id()] = value;
  }
};

TEST_P(ring_alone, can_be_filled_from_the_host) {
  ring<std::uint32_t> r(where(), 32);
  r.fill(21, [](std::uint32_t i) { return 7 * i; });
  auto out = make<std::uint32_t>(64);
  run(1, 32, drain{r.ref(), out.data()});
  const auto all = contents(out);
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(all[i], i < 21 ? 7 * i : ~0u);
    EXPECT_EQ(all[32 + i], i);
  }
}

}  // namespace
}  // namespace grosr::queue
