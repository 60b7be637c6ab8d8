// A team carries out every chunk of a step once, and a step begins when the one before is done:
// with few blocks and many, beside other work, when helpers never come, and across parks. Errors of
// bodies reach the coordinator, an abort ends it, and the watchdog finds a chunk that hangs.
#include <chrono>
#include <string>
#include <thread>

#include "grosr/run/for_each.hpp"
#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(team_test);

using device_word = simt::atomic_ref<std::uint32_t>;
using shared_word = simt::atomic_ref<std::uint32_t, simt::scope::system>;

/// to[i] = from[n - 1 - i] + 1: written by other blocks than those that read it in the next step.
struct reverse {
  const std::uint32_t* from;
  std::uint32_t* to;
  std::uint64_t n;
  GROSR_DEVICE void operator()(std::uint64_t i) const { to[i] = from[n - 1 - i] + 1; }
};

/// Whole chunks, by whole blocks: adds how many items they have, and fails at one item.
struct count_items {
  std::uint32_t* items;
  std::uint64_t fails_at;
  GROSR_DEVICE int operator()(auto& context, std::uint64_t first, std::uint64_t last) const {
    context.sync();
    if (context.rank() == 1)
      device_word(*items).fetch_add(static_cast<std::uint32_t>(last - first), simt::relaxed);
    return first <= fails_at && fails_at < last && context.rank() == 77 ? -EIO : 0;
  }
};

/// One item takes as long as the clock says, or until the runtime aborts.
struct slow_item {
  std::uint64_t ns;
  std::uint32_t* begun;  ///< pinned; may be null
  GROSR_DEVICE void operator()(auto& context, std::uint64_t, std::uint64_t) const {
    if (begun != nullptr && context.rank() == 0) shared_word(*begun).store(1, simt::release);
    const std::uint64_t end = context.clock_ns() + ns;
    while (context.clock_ns() < end && !context.aborted()) simt::pause(1, "the clock");
    context.sync();
  }
};

using work = team_bodies<reverse, count_items, slow_item>;

/// Reverses back and forth `rounds` times.
struct reverses {
  static constexpr grosr::width width = grosr::width::block;
  work* shared;
  std::uint32_t *a, *b;
  std::uint32_t n, chunk, rounds;
  GROSR_DEVICE int operator()(auto& context) const {
    team_loops team(shared, context);
    for (std::uint32_t r = 0; r < rounds; ++r) {
      const reverse body = r % 2 == 0 ? reverse{a, b, n} : reverse{b, a, n};
      if (const int status = team.for_each(n, chunk, body)) return status;
    }
    return 0;
  }
};

/// What for_each() returns for count_items, after a step without an error and before another.
struct counts {
  static constexpr grosr::width width = grosr::width::block;
  work* shared;
  std::uint32_t* items;
  std::uint64_t n, fails_at;
  std::uint32_t chunk;
  GROSR_DEVICE int operator()(auto& context) const {
    team_loops team(shared, context);
    if (team.for_each(n, chunk, count_items{items, n}) != 0) return -1;
    const int status = team.for_each(n, chunk, count_items{items, fails_at});
    if (team.for_each(n, chunk, count_items{items, n}) != 0) return -2;
    return status;
  }
};

struct slows {
  static constexpr grosr::width width = grosr::width::block;
  work* shared;
  std::uint64_t ns, chunks;
  std::uint32_t* begun;
  std::uint32_t steps;
  GROSR_DEVICE int operator()(auto& context) const {
    team_loops team(shared, context);
    int status = 0;
    for (std::uint32_t s = 0; s < steps && status == 0; ++s)
      status = team.for_each(chunks, 1, slow_item{ns, begun});
    return status;
  }
};

/// A block task that waits for a word of the host's, and says that it has begun.
struct keeps {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* begun;  ///< its own, pinned
  const std::uint32_t* gate;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    shared_word(*begun).store(1, simt::relaxed);
    simt::wait_until(
        [&] {
          return shared_word(const_cast<std::uint32_t&>(*gate)).load(simt::acquire) != 0 ||
                 context.aborted();
        },
        simt::forever, nullptr, "the gate");
  }
};

using team_runtime = runtime<reverses, counts, slows, keeps, tree, block_tree, team_helper<work>>;

runtime_options on_blocks(unsigned sms) {
  runtime_options o;
  o.memory_limit = std::size_t{64} << 20;
  o.sms = sms;
  return o;
}

std::uint32_t now(std::uint32_t& word) { return shared_word(word).load(simt::acquire); }

bool comes_to(std::uint32_t& word, std::uint32_t value) {
  for (unsigned i = 0; i < 20'000 && now(word) != value; ++i) std::this_thread::sleep_for(1ms);
  return now(word) == value;
}

/// Both arrays hold `rounds` more or less, each item the same.
template <class Buffer>
::testing::AssertionResult reversed(const Buffer& a, const Buffer& b, std::uint32_t n,
                                    std::uint32_t rounds) {
  std::vector<std::uint32_t> all(a.size());
  (rounds % 2 == 0 ? a : b).copy_to(all);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t from = rounds % 2 == 0 ? i : n - 1 - i;
    if (all[i] != from * 3 + rounds)
      return ::testing::AssertionFailure()
             << "item " << i << " is " << all[i] << ", not " << from * 3 + rounds;
  }
  return ::testing::AssertionSuccess();
}

template <class Buffer>
void fill(Buffer& a, std::uint32_t n) {
  std::vector<std::uint32_t> all(n);
  for (std::uint32_t i = 0; i < n; ++i) all[i] = i * 3;
  a.copy_from(all);
}

TEST_P(team_test, steps_follow_each_other) {
  const std::uint32_t n = 5000;
  auto& a = keep<std::uint32_t>(n);
  auto& b = keep<std::uint32_t>(n);
  for (const unsigned sms : {1u, 2u, 0u}) {
    team_runtime rt(where(), on_blocks(sms));
    const team_memory<work> memory(rt);
    for (const std::uint32_t chunk : {1u, 64u, 700u, 100'000u}) {
      const auto rounds = static_cast<std::uint32_t>(scaled(chunk == 1 ? 4 : 40, 3));
      fill(a, n);
      const ticket t = rt.submit(reverses{memory.get(), a.data(), b.data(), n, chunk, rounds});
      t.wait();
      ASSERT_FALSE(t.failed());
      ASSERT_TRUE(reversed(a, b, n, rounds)) << sms << " multiprocessors, chunks of " << chunk;
    }
    rt.wait_all();  // no helper is left
  }
}

TEST_P(team_test, refuses_what_it_cannot_divide) {
  team_runtime rt(where(), on_blocks(2));
  const team_memory<work> memory(rt);
  auto& a = keep<std::uint32_t>(4);
  rt.submit(reverses{memory.get(), a.data(), a.data(), 4, 0, 1}).wait();
  rt.submit(reverses{memory.get(), a.data(), a.data(), 0x8000'0000, 1, 1}).wait();
  const auto errors = rt.errors();
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].code, -EINVAL);
  EXPECT_EQ(errors[1].code, -EINVAL);
  rt.submit(reverses{memory.get(), a.data(), a.data(), 0, 1, 1}).wait();  // nothing to do
  EXPECT_EQ(rt.errors().size(), 2u);
}

TEST_P(team_test, tells_the_coordinator_of_errors_and_goes_on) {
  team_runtime rt(where(), on_blocks(0));
  const team_memory<work> memory(rt);
  auto& items = keep<std::uint32_t>(1);
  const ticket t = rt.submit(counts{memory.get(), items.data(), 1000, 500, 10});
  t.wait();
  EXPECT_TRUE(t.failed());
  EXPECT_EQ(contents(items)[0], 3000u);
  const auto errors = rt.errors();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, -EIO);
  rt.wait_all();
}

TEST_P(team_test, goes_on_beside_other_work) {
  const std::uint32_t n = 3000;
  auto& a = keep<std::uint32_t>(n);
  auto& b = keep<std::uint32_t>(n);
  auto& leaves = keep<std::uint32_t>(1);
  team_runtime rt(where(), on_blocks(0));
  const team_memory<work> memory(rt);
  const std::uint32_t depth = scaled_depth(12, 8);
  for (int i = 0; i < 3; ++i) {
    fill(a, n);
    rt.submit(tree{leaves.data(), depth});
    const ticket t = rt.submit(reverses{memory.get(), a.data(), b.data(), n, 50, 20});
    rt.submit(block_tree{leaves.data(), 4});
    t.wait();
    ASSERT_TRUE(reversed(a, b, n, 20));
  }
  rt.wait_all();
  EXPECT_EQ(contents(leaves)[0], 3 * ((1u << depth) + 16));
}

// Every other block is in a task that does not end: no helper ever comes.
TEST_P(team_test, waits_for_no_helper_that_does_not_come) {
  const std::uint32_t n = 2000;
  auto& a = keep<std::uint32_t>(n);
  auto& b = keep<std::uint32_t>(n);
  team_runtime rt(where(), on_blocks(2));
  const team_memory<work> memory(rt);
  const std::uint32_t others = rt.stats().workers / run::warps_per_block - 1;
  auto& words = keep<std::uint32_t>(1 + others, simt::space::pinned);
  for (std::uint32_t i = 0; i < others; ++i) rt.submit(keeps{&words[1 + i], &words[0]});
  for (std::uint32_t i = 0; i < others; ++i) ASSERT_TRUE(comes_to(words[1 + i], 1));
  fill(a, n);
  const ticket t = rt.submit(reverses{memory.get(), a.data(), b.data(), n, 20, 6});
  EXPECT_TRUE(t.wait_for(60s));
  EXPECT_TRUE(reversed(a, b, n, 6));
  shared_word(words[0]).store(1, simt::release);
  rt.wait_all();
}

TEST_P(team_test, ends_when_the_runtime_aborts) {
  auto& begun = keep<std::uint32_t>(1, simt::space::pinned);
  team_runtime rt(where(), on_blocks(0));
  const team_memory<work> memory(rt);
  const ticket t = rt.submit(slows{memory.get(), 1'000'000, 100, begun.data(), 1'000'000});
  EXPECT_TRUE(comes_to(begun[0], 1));
  EXPECT_EQ(error_of([&] { rt.stop(1ms); }).code(), errc::timed_out);
  EXPECT_EQ(error_of([&] { t.wait(); }).code(), errc::stopped);
}

// Chunks that are left are dropped, however many there are, with helpers and without.
TEST_P(team_test, drops_what_is_left_of_a_long_step) {
  if (where().is_cuda()) GTEST_SKIP() << "a GPU carries a step out";
  for (unsigned blocks : {0u, 1u}) {
    auto& begun = keep<std::uint32_t>(1, simt::space::pinned);
    runtime_options o = on_blocks(blocks);
    if (blocks == 1) o.blocks_per_sm = 1;
    std::chrono::steady_clock::time_point aborted;
    {
      team_runtime rt(where(), o);
      const team_memory<work> memory(rt);
      rt.submit(slows{memory.get(), 2'000, 1'000'000'000, begun.data(), 1});
      EXPECT_TRUE(comes_to(begun[0], 1));
      EXPECT_EQ(error_of([&] { rt.stop(1ms); }).code(), errc::timed_out);
      aborted = std::chrono::steady_clock::now();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - aborted, 5s) << blocks;
  }
}

TEST_P(team_test, goes_on_after_parks) {
  const std::uint32_t n = 2000;
  auto& a = keep<std::uint32_t>(n);
  auto& b = keep<std::uint32_t>(n);
  team_runtime rt(where(), on_blocks(0));
  const team_memory<work> memory(rt);
  for (std::uint32_t i = 0; i < scaled(20, 4); ++i) {
    fill(a, n);
    const ticket t = rt.submit(reverses{memory.get(), a.data(), b.data(), n, 10 + i, 7});
    rt.park();  // the coordinator ends; helpers that were called may come in the next kernel
    t.wait();
    ASSERT_TRUE(reversed(a, b, n, 7));
  }
  rt.wait_all();
}

runtime_options impatient() {
  runtime_options o = on_blocks(0);
  o.watchdog = 300ms;
  return o;
}

TEST_P(team_test, that_makes_progress_is_left_alone_by_the_watchdog) {
  auto& begun = keep<std::uint32_t>(1, simt::space::pinned);
  // Many short steps of one block; one step of many chunks.
  for (const std::uint64_t chunks : {1u, 60u}) {
    team_runtime rt(where(), impatient());
    const team_memory<work> memory(rt);
    const ticket t =
        rt.submit(slows{memory.get(), 20'000'000, chunks, begun.data(), chunks == 1 ? 40u : 1u});
    t.wait();
    EXPECT_FALSE(t.failed());
  }
}

TEST_P(team_test, with_a_chunk_that_hangs_is_named_by_the_watchdog) {
  team_runtime rt(where(), impatient());
  const team_memory<work> memory(rt);
  const ticket t = rt.submit(slows{memory.get(), 3'600'000'000'000, 8, nullptr, 1});
  const error e = error_of([&] { t.wait(); });
  EXPECT_EQ(e.code(), errc::watchdog) << e.what();
  EXPECT_NE(std::string(e.what()).find("slows"), std::string::npos) << e.what();
}

TEST(team, steps_follow_each_other_in_every_schedule) {
  const std::uint32_t n = 300;
  std::vector<std::uint32_t> a(n), b(n);
  std::uint32_t round = 0;
  for_seeds(60, [&] {
    for (std::uint32_t i = 0; i < n; ++i) a[i] = i * 3;
    team_runtime rt(device(), on_blocks(1 + round % 3));
    const team_memory<work> memory(rt, round % 4);
    const ticket t = rt.submit(reverses{memory.get(), a.data(), b.data(), n, 1 + round % 50, 4});
    if (round % 5 == 4) rt.park();
    t.wait();
    ASSERT_FALSE(t.failed());
    for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(a[i], i * 3 + 4) << i;
    rt.wait_all();
    ++round;
  });
}

}  // namespace
}  // namespace grosr::testing
