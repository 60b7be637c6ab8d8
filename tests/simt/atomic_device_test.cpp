// Read-modify-writes by all lanes of a grid lose nothing, and release pairs with acquire.
#include "grosr/simt/atomic.hpp"

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(atomic);

struct counters {
  std::uint32_t added, subtracted, ored, anded, least, greatest;
  std::uint64_t wide, claimed, least_wide, greatest_wide;
};

struct hammer {
  counters* c;
  unsigned turns;
  GROSR_DEVICE void operator()() const {
    const unsigned self = block_id() * block_size() + thread_id();
    for (unsigned i = 0; i < turns; ++i) {
      atomic_ref(c->added).fetch_add(1, relaxed);
      atomic_ref(c->subtracted).fetch_sub(2, relaxed);
      atomic_ref(c->wide).fetch_add(std::uint64_t{1} << 20, relaxed);
      atomic_ref<std::uint64_t> claimed(c->claimed);
      std::uint64_t seen = claimed.load(relaxed);
      while (!claimed.compare_exchange(seen, seen + 3, acq_rel)) {
      }
    }
    const std::uint64_t high = std::uint64_t{self + 5} << 33;
    atomic_ref(c->least).fetch_min(self + 5, relaxed);
    atomic_ref(c->greatest).fetch_max(self + 5, relaxed);
    atomic_ref(c->least_wide).fetch_min(high, relaxed);
    atomic_ref(c->greatest_wide).fetch_max(high, acq_rel);
    atomic_ref(c->ored).fetch_or(1u << self % 32, relaxed);
    atomic_ref(c->anded).fetch_and(~(1u << self % 32), relaxed);
  }
};

constexpr counters at_first{0, 0, 0, ~0u, ~0u, 0, 0, 0, ~std::uint64_t{0}, 0};

void expect_all(const counters& c, std::uint64_t lanes, std::uint64_t operations) {
  EXPECT_EQ(c.least, 5u);
  EXPECT_EQ(c.greatest, lanes + 4);
  EXPECT_EQ(c.least_wide, std::uint64_t{5} << 33);
  EXPECT_EQ(c.greatest_wide, (lanes + 4) << 33);
  EXPECT_EQ(c.added, operations);
  EXPECT_EQ(c.subtracted, static_cast<std::uint32_t>(0 - 2 * operations));
  EXPECT_EQ(c.wide, operations << 20);
  EXPECT_EQ(c.claimed, 3 * operations);
  EXPECT_EQ(c.ored, ~0u);
  EXPECT_EQ(c.anded, 0u);
}

TEST_P(atomic, nothing_is_lost) {
  auto c = make<counters>(1);
  c.copy_from({&at_first, 1});
  run(8, 128, hammer{c.data(), 50});
  expect_all(contents(c)[0], 8 * 128, 8 * 128 * 50);
}

TEST(atomic_seeded, nothing_is_lost_in_any_schedule) {
  testing::for_seeds(100, [] {
    counters c = at_first;
    run(device(), {2, 32}, hammer{&c, 3});
    expect_all(c, 2 * 32, 2 * 32 * 3);
  });
}

// A message by one block's leader, taken by another's: plain data behind a release store.
struct pass_message {
  std::uint32_t* flag;
  std::uint32_t* data;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    if (lane_id() != 0) return;
    if (block_id() == 0) {
      for (unsigned i = 0; i < 64; ++i) data[i] = i * i;
      atomic_ref(*flag).store(1, release);  // R: pairs with the load below
    } else {
      for (unsigned turn = 0; atomic_ref(*flag).load(acquire) == 0; ++turn) {
        pause(turn, "the message");
      }
      std::uint32_t sum = 0;
      for (unsigned i = 0; i < 64; ++i) sum += data[i];
      *out = sum;
    }
  }
};

TEST_P(atomic, release_publishes_plain_writes) {
  auto words = make<std::uint32_t>(66);
  run(2, 32, pass_message{words.data(), words.data() + 1, words.data() + 65});
  EXPECT_EQ(contents(words)[65], 63u * 64 * 127 / 6);
}

struct exchange_tokens {
  std::uint32_t* slot;
  std::uint32_t* seen;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t got = atomic_ref(*slot).exchange(thread_id() + 1, acq_rel);
    atomic_ref(seen[got]).fetch_add(1, relaxed);
  }
};

TEST_P(atomic, exchange_hands_each_token_on_once) {
  auto words = make<std::uint32_t>(130);
  run(1, 128, exchange_tokens{words.data(), words.data() + 1});
  const auto all = contents(words);
  for (unsigned token = 0; token <= 128; ++token) {
    EXPECT_EQ(all[1 + token] + (all[0] == token ? 1 : 0), 1u) << token;
  }
}

}  // namespace
}  // namespace grosr::simt
