// Block tasks age like others: those of low urgency have their turn while more urgent ones go on
// coming.
#include <chrono>

#include "run/tasks.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(block_tasks);

/// One of a chain of block tasks: counts, and starts the next at its own level.
struct block_link {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* done;
  std::uint32_t left;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    add_one(done);
    if (left != 0) context.spawn(block_link{done, left - 1});
  }
};

/// Notes how many links were done when it ran.
struct block_note {
  static constexpr grosr::width width = grosr::width::block;
  const std::uint32_t* done;
  std::uint32_t* seen;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == 0)
      *seen = 1 + simt::atomic_ref(const_cast<std::uint32_t&>(*done)).load(simt::relaxed);
  }
};

/// A rendezvous runs few tasks, so that a test of many of them is short.
struct short_bursts : run::default_policy {
  static constexpr unsigned block_burst_runs = 4;
};

constexpr std::uint32_t chains = 8, length = 250;

/// A level is first in one of so many rendezvous, of so many tasks; and two rendezvous more.
constexpr std::uint32_t most_before =
    (short_bursts::ageing_turns * priority_levels + 2) * short_bursts::block_burst_runs;
static_assert(most_before < chains * length / 2);

/// Starts a note of each lower level, and urgent chains, so that the block has all of them at once.
struct plant {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* done;
  std::uint32_t* seen;  ///< by level
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    for (std::uint32_t l = 0; l + 1 < priority_levels; ++l)
      context.spawn(block_note{done, seen + l}, static_cast<priority>(l));
    for (std::uint32_t i = 0; i < chains; ++i)
      context.spawn(block_link{done, length - 1}, priority::urgent);
  }
};

using block_runtime = basic_runtime<short_bursts, plant, block_link, block_note>;

/// On one block: nobody else could run what it leaves.
runtime_options one_block() {
  runtime_options o = small_options();
  o.sms = o.blocks_per_sm = 1;
  return o;
}

TEST_P(block_tasks, of_low_urgency_run_beside_urgent_ones) {
  block_runtime rt(where(), one_block());
  auto& words = keep<std::uint32_t>(1 + priority_levels);
  rt.submit(plant{words.data(), words.data() + 1});
  ASSERT_TRUE(rt.wait_all_for(60s));
  const auto all = contents(words);
  EXPECT_EQ(all[0], chains * length);
  for (std::uint32_t l = 0; l + 1 < priority_levels; ++l) {
    EXPECT_GE(all[1 + l], 1u) << "level " << l;
    EXPECT_LT(all[1 + l], most_before) << "level " << l;
  }
}

}  // namespace
}  // namespace grosr::testing
