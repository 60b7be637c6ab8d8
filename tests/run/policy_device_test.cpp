// What a worker takes next is the policy's: with another one than the default the same scheduler
// runs what is urgent first and lets the rest wait, or takes all levels in turn; and loses nothing.
#include <chrono>

#include "grosr/run/detail/policy.hpp"
#include "run/tasks.hpp"

namespace grosr::testing {

using namespace std::chrono_literals;

/// The most urgent level that has work, always. Less urgent work may starve.
struct strict_priority : run::default_policy {
  GROSR_DEVICE static constexpr bool others_first(unsigned) { return false; }
  GROSR_DEVICE static constexpr std::uint32_t level_at(unsigned, unsigned k) {
    return priority_levels - 1 - k;
  }
  GROSR_DEVICE static constexpr std::uint32_t levels_that_end_burst(std::uint32_t level, unsigned) {
    return run::levels_above(level);
  }
};

/// Every level in its turn, whatever it is called. Nobody yields.
struct round_robin : run::default_policy {
  GROSR_DEVICE static constexpr bool others_first(unsigned) { return false; }
  GROSR_DEVICE static constexpr std::uint32_t level_at(unsigned turn, unsigned k) {
    return (turn + k) % priority_levels;
  }
  GROSR_DEVICE static constexpr std::uint32_t levels_that_end_burst(std::uint32_t level, unsigned) {
    return run::all_levels & ~run::level_bit(level);
  }
  GROSR_DEVICE static constexpr std::uint32_t yields_to(std::uint32_t) { return 0; }
};

namespace {

/// One of a chain: counts, and starts the next at its own level.
struct link {
  std::uint32_t* done;
  std::uint32_t left;
  GROSR_DEVICE void operator()(auto& context) const {
    add_one(done);
    if (left != 0) context.spawn(link{done, left - 1});
  }
};

/// Adds up how many links were done when it ran.
struct note {
  const std::uint32_t* done;
  std::uint64_t* sum;
  std::uint32_t* notes;
  GROSR_DEVICE void operator()(auto&) const {
    const std::uint64_t now =
        simt::atomic_ref(const_cast<std::uint32_t&>(*done)).load(simt::relaxed);
    simt::atomic_ref(*sum).fetch_add(now, simt::relaxed);
    add_one(notes);
  }
};

/// A block task among them.
struct block_note {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* notes;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == 0) add_one(notes);
  }
};

constexpr std::uint32_t chains_a_lane = 8, notes_a_lane = 2, length = 16;

/// Starts urgent chains and low notes, so that its worker has both.
struct plant {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* done;
  std::uint64_t* sum;
  std::uint32_t* notes;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = 0; i < notes_a_lane; ++i)
      context.spawn(note{done, sum, notes}, priority::low);
    for (std::uint32_t i = 0; i < chains_a_lane; ++i)
      context.spawn(link{done, length - 1}, priority::high);
    if (context.rank() == 0) context.spawn(block_note{notes}, priority::normal);
  }
};

class policies : public runtime_test {
 protected:
  /// How much of the urgent chains was done when a low note ran: 0 to 1, the mean.
  template <class Policy>
  double when_low_runs() {
    basic_runtime<Policy, plant, link, note, block_note> rt(where(), small_options());
    auto& words = keep<std::uint32_t>(2);  // links that were done, and notes
    auto& sum = keep<std::uint64_t>(1);
    const auto plants = static_cast<std::uint32_t>(rt.stats().workers);
    const std::uint32_t lanes = 32 * plants, links = lanes * chains_a_lane * length;
    rt.submit(std::vector<plant>(plants, plant{words.data(), sum.data(), words.data() + 1}),
              priority::urgent);
    EXPECT_TRUE(rt.wait_all_for(60s));
    rt.stop(20s);
    EXPECT_EQ(contents(words)[0], links);
    EXPECT_EQ(contents(words)[1], lanes * notes_a_lane + plants);
    return static_cast<double>(contents(sum)[0]) / (lanes * notes_a_lane) / links;
  }
};
INSTANTIATE_TEST_SUITE_P(on, policies, ::testing::Values("host:0", "cuda:0"), device_test_name);

TEST_P(policies, by_strict_priority_let_low_work_wait) {
  EXPECT_GT(when_low_runs<strict_priority>(), 0.7);
}

TEST_P(policies, by_round_robin_do_not) { EXPECT_LT(when_low_runs<round_robin>(), 0.3); }

}  // namespace
}  // namespace grosr::testing
