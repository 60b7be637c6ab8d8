// A deque is linearizable: its owner takes the newest entry, thieves the oldest; empty and full
// answers to the owner are exact. Only a thief's empty answer may be spurious.
#include "grosr/queue/deque.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "queue/history.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(deque_is_linearizable);

constexpr std::uint32_t capacity = 4;

using testing::scramble;

struct work {
  std::uint64_t* word;
  std::uint64_t* entries;
  recorder_ref log;
  std::uint32_t steps, thief_steps, salt;

  GROSR_DEVICE void operator()() const {
    const deque_ref deque(word, entries, capacity);
    if (simt::lane_id() >= 2) return;
    if (simt::block_id() == 0) {
      if (simt::lane_id() == 0) own(deque);
      return;
    }
    for (std::uint32_t i = 0; i < thief_steps; ++i) {
      const std::uint32_t began = log.now();
      const std::uint64_t entry = deque.steal();
      if (entry != 0) log.add(act::steal, static_cast<std::uint32_t>(entry), began);
    }
  }

  GROSR_DEVICE void own(const deque_ref& deque) const {
    deque_owner owner = deque.adopt();
    std::uint32_t value = 1;
    for (std::uint32_t i = 0; i < steps; ++i) {
      const std::uint32_t began = log.now();
      if (scramble(salt + i) % 5 < 3) {
        if (deque.push(owner, value))
          log.add(act::push, value++, began);
        else
          log.add(act::push_full, 0, began);
      } else {
        const std::uint64_t entry = deque.pop(owner);
        log.add(entry != 0 ? act::pop : act::pop_empty, static_cast<std::uint32_t>(entry), began);
      }
    }
  }
};

std::vector<operation> history_of(device d, unsigned thieves, std::uint32_t steps,
                                  std::uint32_t thief_steps, std::uint32_t salt) {
  simt::buffer<std::uint64_t> word(d, simt::space::device, 1);
  simt::buffer<std::uint64_t> entries(d, simt::space::device, capacity);
  const recorder log(d, steps + 2 * thieves * thief_steps);
  simt::run(d, {1 + thieves, 32},
            work{word.data(), entries.data(), log.ref(), steps, thief_steps, salt});
  return log.history();
}

TEST(deque_is_linearizable_seeded, in_1000_schedules) {
  std::uint32_t round = 0;
  std::size_t stolen = 0;
  testing::for_seeds(
      1000,
      [&] {
        const auto h = history_of(device(), 1 + round % 2, 12, 6, round * 100);
        ++round;
        for (const operation& o : h) stolen += o.what == act::steal ? 1 : 0;
        EXPECT_TRUE(linearizable(h, deque_model{capacity})) << text_of(h);
      },
      1000);
  EXPECT_GE(stolen, round / 2);
}

TEST_P(deque_is_linearizable, in_parallel) {
  for (std::uint32_t again = 0; again < testing::scaled(200, 20); ++again) {
    const auto h = history_of(where(), 3, 20, 7, again * 100);
    ASSERT_TRUE(linearizable(h, deque_model{capacity})) << text_of(h);
  }
}

}  // namespace
}  // namespace grosr::queue
