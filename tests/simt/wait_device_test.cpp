// wait_until ends when it should, says why it ended, and lets those it waits for run: other blocks,
// other warps, other lanes of the same warp, the host.
#include "grosr/simt/wait.hpp"

#include <thread>

#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(wait);

// Thread i of the grid waits for thread i - 1, so all of them run one after the other.
struct take_turns {
  std::uint32_t* turn;
  std::uint32_t* log;
  GROSR_DEVICE void operator()() const {
    // Backwards in a warp and in a block, so that who runs first waits longest.
    const unsigned self = block_id() * block_size() + (block_size() - 1 - thread_id());
    wait_until([&] { return atomic_ref(*turn).load(acquire) == self; }, forever, nullptr,
               "my turn");
    log[self] = self + 1;
    atomic_ref(*turn).store(self + 1, release);
  }
};

TEST_P(wait, lanes_warps_and_blocks_take_turns) {
  constexpr unsigned threads = 4 * 64;
  auto words = make<std::uint32_t>(1 + threads);
  run(4, 64, take_turns{words.data(), words.data() + 1});
  const auto all = contents(words);
  for (unsigned i = 0; i < threads; ++i) ASSERT_EQ(all[1 + i], i + 1);
}

TEST(wait_seeded, lanes_take_turns_in_every_schedule) {
  testing::for_seeds(100, [] {
    std::uint32_t words[1 + 64] = {};
    run(device(), {2, 32}, take_turns{words, words + 1});
    EXPECT_EQ(words[0], 64u);
  });
}

struct wait_in_vain {
  std::uint32_t* abort;
  std::uint64_t* waited_ns;
  std::uint32_t* result;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t begin = clock_ns();
    const auto r = wait_until([] { return false; }, begin + 2'000'000, abort, "Godot");
    result[lane_id()] = static_cast<std::uint32_t>(r);
    waited_ns[lane_id()] = clock_ns() - begin;
  }
};

TEST_P(wait, a_deadline_ends_it) {
  auto abort = make<std::uint32_t>(1);
  auto result = make<std::uint32_t>(32);
  auto waited = make<std::uint64_t>(32);
  run(1, 32, wait_in_vain{abort.data(), waited.data(), result.data()});
  for (std::uint32_t r : contents(result))
    EXPECT_EQ(r, static_cast<std::uint32_t>(wait_result::timed_out));
  for (std::uint64_t ns : contents(waited)) {
    EXPECT_GE(ns, 2'000'000u);
    EXPECT_LT(ns, 1'000'000'000u);
  }
}

TEST_P(wait, the_abort_word_ends_it) {
  auto abort = make<std::uint32_t>(1);
  const std::uint32_t one = 1;
  abort.copy_from({&one, 1});
  auto result = make<std::uint32_t>(32);
  auto waited = make<std::uint64_t>(32);
  run(1, 32, wait_in_vain{abort.data(), waited.data(), result.data()});
  for (std::uint32_t r : contents(result))
    EXPECT_EQ(r, static_cast<std::uint32_t>(wait_result::aborted));
}

struct wait_for_nothing {
  std::uint32_t* result;
  GROSR_DEVICE void operator()() const {
    std::uint32_t raised = 1;  // a predicate that is true wins over deadline and abort
    result[lane_id()] =
        static_cast<std::uint32_t>(wait_until([] { return true; }, 0, &raised, "nothing"));
  }
};

TEST_P(wait, a_true_predicate_wins) {
  auto result = make<std::uint32_t>(32);
  run(1, 32, wait_for_nothing{result.data()});
  for (std::uint32_t r : contents(result))
    EXPECT_EQ(r, static_cast<std::uint32_t>(wait_result::ready));
}

// One elected lane polls pinned memory, and a shuffle tells the others.
struct wait_for_host {
  std::uint32_t* from_host;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    std::uint32_t got = 0;
    if (lane_id() == 0) {
      atomic_ref<std::uint32_t, scope::system> word(*from_host);
      wait_until([&] { return (got = word.load(acquire)) != 0; }, forever, nullptr, "the host");
    }
    out[block_id() * block_size() + thread_id()] = shuffle(full_mask, got, 0);
  }
};

TEST_P(wait, the_host_ends_it) {
  auto flag = make<std::uint32_t>(1, space::pinned);
  auto out = make<std::uint32_t>(4 * 64);
  stream s(where());
  launch(s, {4, 64}, wait_for_host{flag.data(), out.data()});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(s.done());
  atomic_ref<std::uint32_t, scope::system>(flag[0]).store(42, release);
  s.wait();
  EXPECT_TRUE(s.done());
  for (std::uint32_t v : contents(out)) EXPECT_EQ(v, 42u);
}

struct read_clock {
  std::uint64_t* out;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t first = clock_ns();
    for (unsigned turn = 0; clock_ns() < first + 100'000; ++turn) pause(turn, "the clock");
    out[lane_id()] = clock_ns() - first;
  }
};

TEST_P(wait, the_clock_goes_on) {
  auto out = make<std::uint64_t>(32);
  run(1, 32, read_clock{out.data()});
  for (std::uint64_t ns : contents(out)) {
    EXPECT_GE(ns, 100'000u);
    EXPECT_LT(ns, 1'000'000'000u);
  }
}

}  // namespace
}  // namespace grosr::simt
