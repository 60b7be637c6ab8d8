// Read-modify-writes by all lanes of a grid lose nothing, and release pairs with acquire.
#include "grosr/simt/atomic.hpp"

#include <vector>

#include "grosr/simt/global_ref.hpp"
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

template <template <class, scope> class Ref>
struct hammer {
  template <class T>
  using ref = Ref<T, scope::device>;
  counters* c;
  unsigned turns;
  GROSR_DEVICE void operator()() const {
    const unsigned self = block_id() * block_size() + thread_id();
    for (unsigned i = 0; i < turns; ++i) {
      ref<std::uint32_t>(c->added).fetch_add(1, relaxed);
      ref<std::uint32_t>(c->subtracted).fetch_sub(2, relaxed);
      ref<std::uint64_t>(c->wide).fetch_add(std::uint64_t{1} << 20, relaxed);
      ref<std::uint64_t> claimed(c->claimed);
      std::uint64_t seen = claimed.load(relaxed);
      while (!claimed.compare_exchange(seen, seen + 3, relaxed)) {
      }
    }
    const std::uint64_t high = std::uint64_t{self + 5} << 33;
    ref<std::uint32_t>(c->least).fetch_min(self + 5, relaxed);
    ref<std::uint32_t>(c->greatest).fetch_max(self + 5, relaxed);
    ref<std::uint64_t>(c->least_wide).fetch_min(high, relaxed);
    ref<std::uint64_t>(c->greatest_wide).fetch_max(high, acq_rel);
    ref<std::uint32_t>(c->ored).fetch_or(1u << self % 32, relaxed);
    ref<std::uint32_t>(c->anded).fetch_and(~(1u << self % 32), relaxed);
  }
};

/// What is there is not asked for.
template <class T, scope S>
struct reducing_ref : global_ref<T, S> {
  using global_ref<T, S>::global_ref;
  GROSR_DEVICE void fetch_add(T v, order o) const { this->store_add(v, o); }
  GROSR_DEVICE void fetch_min(T v, order o) const { this->store_min(v, o); }
  GROSR_DEVICE void fetch_max(T v, order o) const { this->store_max(v, o); }
  GROSR_DEVICE void fetch_or(T v, order o) const { this->store_or(v, o); }
  GROSR_DEVICE void fetch_and(T v, order o) const { this->store_and(v, o); }
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
  run(8, 128, hammer<atomic_ref>{c.data(), 50});
  expect_all(contents(c)[0], 8 * 128, 8 * 128 * 50);
}

TEST_P(atomic, nothing_is_lost_in_global_memory) {
  auto c = make<counters>(1);
  c.copy_from({&at_first, 1});
  run(8, 128, hammer<global_ref>{c.data(), 50});
  expect_all(contents(c)[0], 8 * 128, 8 * 128 * 50);
}

TEST_P(atomic, nothing_is_lost_where_nothing_comes_back) {
  auto c = make<counters>(1);
  c.copy_from({&at_first, 1});
  run(8, 128, hammer<reducing_ref>{c.data(), 50});
  expect_all(contents(c)[0], 8 * 128, 8 * 128 * 50);
}

/// Loads, stores and additions of what is no unsigned number.
struct add_fractions {
  float* single_sum;
  double* double_sum;
  std::int64_t* signed_sum;
  GROSR_DEVICE void operator()() const {
    if (thread_id() == 0 && block_id() == 0) {
      global_ref(single_sum[1]).store(0.25f, relaxed);
      global_ref(double_sum[1]).store(global_ref(double_sum[2]).load(relaxed) * 2, relaxed);
    }
    if (lane_id() % 2 == 0) {
      global_ref(*single_sum).fetch_add(0.5f, relaxed);
      global_ref(*double_sum).fetch_add(0.125, relaxed);
      global_ref<std::int64_t, scope::system>(*signed_sum).fetch_add(-3, relaxed);
    } else {
      global_ref(*single_sum).store_add(0.5f, relaxed);
      global_ref(*double_sum).store_add(0.125, relaxed);
      global_ref<std::int64_t, scope::system>(*signed_sum).store_add(-3, relaxed);
    }
  }
};

TEST_P(atomic, numbers_in_global_memory_add_up) {
  auto singles = make<float>(2);
  auto doubles = make<double>(3);
  auto whole = make<std::int64_t>(1);
  singles.copy_from(std::vector<float>{0, 0});
  doubles.copy_from(std::vector<double>{0, 0, 1.5});
  whole.copy_from(std::vector<std::int64_t>{7});
  run(4, 64, add_fractions{singles.data(), doubles.data(), whole.data()});
  EXPECT_EQ(contents(singles), (std::vector<float>{128, 0.25f}));
  EXPECT_EQ(contents(doubles), (std::vector<double>{32, 3, 1.5}));
  EXPECT_EQ(contents(whole)[0], 7 - 3 * 256);
}

TEST(atomic_seeded, nothing_is_lost_in_any_schedule) {
  testing::for_seeds(100, [] {
    counters c = at_first;
    run(device(), {2, 32}, hammer<atomic_ref>{&c, 3});
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
