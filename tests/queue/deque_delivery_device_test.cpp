// A deque gives every entry to its owner or to one thief, whatever its capacity and however often
// its counters wrapped.
#include "grosr/queue/deque.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(deque_delivers);

using testing::scramble;

// Lane 0 of block 0 owns the deque: it pushes runs of entries and pops some of them. The lanes of
// all other warps steal. Entry i names cell i of `payload`, which the owner writes before it
// pushes.
struct work {
  std::uint64_t* word;
  std::uint64_t* entries;
  std::uint32_t capacity, total;
  std::uint32_t* done;
  std::uint32_t* payload;
  std::uint32_t* seen;
  std::uint32_t* trouble;

  GROSR_DEVICE void take(std::uint64_t entry) const {
    const auto i = static_cast<std::uint32_t>(entry - 1);
    if (i >= total || payload[i] != 7 * i + 1) *trouble = 1;
    if (i < total) simt::atomic_ref(seen[i]).fetch_add(1, simt::relaxed);
    simt::atomic_ref(*done).fetch_add(1, simt::release);
  }

  GROSR_DEVICE void own(const deque_ref& deque) const {
    deque_owner owner = deque.adopt();
    std::uint32_t i = 0;
    for (std::uint32_t turn = 0; simt::atomic_ref(*done).load(simt::acquire) < total; ++turn) {
      const std::uint32_t pushes = scramble(turn) % 8, pops = scramble(turn + 77) % 8;
      if (turn % 3 == 0) {  // several with one release
        std::uint32_t laid = 0;
        for (; laid < pushes && i < total; ++laid, ++i) {
          payload[i] = 7 * i + 1;
          if (!deque.lay(owner, laid, i + 1)) break;
        }
        if (laid != 0) deque.publish(owner, laid);
      } else {
        for (std::uint32_t k = 0; k < pushes && i < total; ++k) {
          payload[i] = 7 * i + 1;
          if (!deque.push(owner, i + 1)) break;
          ++i;
        }
      }
      for (std::uint32_t k = 0; k < pops; ++k) {
        const std::uint64_t entry = deque.pop(owner);
        if (entry == 0) break;
        take(entry);
      }
      if (i == total || turn % 4 == 0) simt::pause(turn % 8, "thieves");
    }
  }

  GROSR_DEVICE void operator()() const {
    const deque_ref deque(word, entries, capacity);
    if (simt::block_id() == 0 && simt::warp_id() == 0) {
      if (simt::lane_id() == 0) own(deque);
      return;
    }
    for (std::uint32_t turn = 0; simt::atomic_ref(*done).load(simt::acquire) < total; ++turn) {
      if (deque.size() > capacity) *trouble = 2;
      const std::uint64_t entry = deque.steal();
      if (entry != 0) {
        take(entry);
        turn = 0;
      } else {
        simt::pause(turn, "an entry");
      }
    }
  }
};

void expect_delivery(device d, simt::shape grid, std::uint32_t capacity, std::uint32_t total,
                     std::uint32_t start = 0) {
  simt::buffer<std::uint64_t> word(d, simt::space::device, 1);
  const std::uint64_t first = std::uint64_t{start} << 32 | start;
  word.copy_from({&first, 1});
  simt::buffer<std::uint64_t> entries(d, simt::space::device, capacity);
  simt::buffer<std::uint32_t> words(d, simt::space::device, 64);
  simt::buffer<std::uint32_t> payload(d, simt::space::device, total);
  simt::buffer<std::uint32_t> seen(d, simt::space::device, total);
  simt::run(d, grid,
            work{word.data(), entries.data(), capacity, total, words.data(), payload.data(),
                 seen.data(), words.data() + 32});
  std::uint32_t counts[64];
  words.copy_to(counts);
  EXPECT_EQ(counts[32], 0u) << "1: a wrong entry, 2: too many entries";
  EXPECT_EQ(counts[0], total);
  std::vector<std::uint32_t> all(total);
  seen.copy_to(all);
  for (std::uint32_t i = 0; i < total; ++i) ASSERT_EQ(all[i], 1u) << "entry " << i;
  std::uint64_t last = 0;
  word.copy_to({&last, 1});
  EXPECT_EQ(static_cast<std::uint32_t>(last >> 32), static_cast<std::uint32_t>(last));  // empty
}

TEST_P(deque_delivers, every_entry_once) {
  const auto total = static_cast<std::uint32_t>(testing::scaled(5000, 200));
  for (std::uint32_t capacity : {2u, 8u, 128u}) expect_delivery(where(), {4, 64}, capacity, total);
}

TEST_P(deque_delivers, when_its_counters_wrap) {
  for (std::uint32_t before : {1u, 5u, 100u})
    expect_delivery(where(), {2, 64}, 8, 400, 0u - before);
}

TEST(deque_delivers_seeded, every_entry_once) {
  testing::for_seeds(300, [] { expect_delivery(device(), {2, 32}, 4, 24); });
}

struct alone {
  std::uint64_t* word;
  std::uint64_t* entries;
  std::uint64_t* out;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    const deque_ref d(word, entries, 4);
    deque_owner o = d.adopt();
    std::uint32_t n = 0;
    out[n++] = d.pop(o);
    out[n++] = d.peek(o);
    out[n++] = d.steal();
    for (std::uint64_t v = 1; v <= 5; ++v) out[n++] = d.push(o, v) ? 1 : 0;
    out[n++] = d.size();
    out[n++] = d.peek(o);
    out[n++] = d.steal();
    out[n++] = d.pop(o);
    out[n++] = d.push(o, 6) ? 1 : 0;
    out[n++] = d.pop(o);
    out[n++] = d.steal();
    deque_owner again = d.adopt();
    out[n++] = d.pop(again);
    out[n++] = d.pop(again);
    out[n++] = d.size();
  }
};

TEST_P(deque_delivers, newest_to_the_owner_and_oldest_to_thieves) {
  auto word = make<std::uint64_t>(1);
  auto entries = make<std::uint64_t>(4);
  auto out = make<std::uint64_t>(18);
  run(1, 32, alone{word.data(), entries.data(), out.data()});
  EXPECT_EQ(contents(out),
            (std::vector<std::uint64_t>{0, 0, 0, 1, 1, 1, 1, 0, 4, 4, 1, 4, 1, 6, 2, 3, 0, 0}));
}

}  // namespace
}  // namespace grosr::queue
