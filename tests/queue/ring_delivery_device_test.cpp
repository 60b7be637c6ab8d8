// A ring loses nothing, doubles nothing, tears nothing, and keeps the order of each producer, with
// many producers and consumers, over many laps, at any capacity.
#include <map>
#include <string>

#include "grosr/queue/ring.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(ring_delivers);

// Every lane of the first half of the blocks produces `each` values, every lane of the others
// consumes until all have come. Lanes diverge as the ring fills and empties.
template <class T>
struct exchange {
  ring_ref<T> ring;
  std::uint32_t each, total;
  std::uint32_t* taken;
  T* values;                 ///< in the order in which consumers counted them
  std::uint32_t* consumers;  ///< who took it

  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    const bool produces = simt::block_id() < simt::grid_size() / 2;
    simt::atomic_ref<std::uint32_t> count(*taken);
    for (std::uint32_t i = 0, turn = 0;;) {
      bool moved = false;
      if (produces) {
        if (i == each) return;
        moved = ring.try_push(simt::active_mask(), T::make(self, i));
        if (moved) ++i;
      } else {
        if (count.load(simt::relaxed) == total) return;
        T value{};
        moved = ring.try_pop(simt::active_mask(), value);
        if (moved) {
          const std::uint32_t at = count.fetch_add(1, simt::relaxed);
          values[at] = value;
          consumers[at] = self;
        }
      }
      turn = moved ? 0 : turn + 1;
      if (!moved) simt::pause(turn, "the other side of the ring");
    }
  }
};

struct small {
  std::uint32_t bits;
  GROSR_DEVICE static small make(std::uint32_t who, std::uint32_t i) { return {who << 16 | i}; }
  std::uint32_t producer() const { return bits >> 16; }
  std::uint32_t number() const { return bits & 0xffff; }
  bool whole() const { return true; }
};

struct large {
  std::uint32_t who, i;
  std::uint64_t check[5];
  GROSR_DEVICE static large make(std::uint32_t who, std::uint32_t i) {
    large l{who, i, {}};
    for (std::uint64_t k = 0; k < 5; ++k) l.check[k] = (std::uint64_t{who} << 32 | i) * (k + 3);
    return l;
  }
  std::uint32_t producer() const { return who; }
  std::uint32_t number() const { return i; }
  bool whole() const {
    const large expected = make(who, i);
    for (int k = 0; k < 5; ++k)
      if (check[k] != expected.check[k]) return false;
    return true;
  }
};

template <class T>
void expect_delivery(device d, simt::shape grid, std::uint32_t capacity, std::uint32_t each) {
  const std::uint32_t producers = grid.blocks / 2 * grid.threads, total = producers * each;
  ring<T> r(d, capacity);
  simt::buffer<std::uint32_t> taken(d, simt::space::device, 1);
  simt::buffer<T> values(d, simt::space::device, total);
  simt::buffer<std::uint32_t> consumers(d, simt::space::device, total);
  simt::run(d, grid,
            exchange<T>{r.ref(), each, total, taken.data(), values.data(), consumers.data()});

  std::vector<T> value(total);
  std::vector<std::uint32_t> consumer(total), seen(total);
  values.copy_to(value);
  consumers.copy_to(consumer);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> next;
  for (std::uint32_t i = 0; i < total; ++i) {
    const T& v = value[i];
    ASSERT_TRUE(v.whole()) << "a torn value from " << v.producer();
    ASSERT_LT(v.producer(), producers);
    ASSERT_LT(v.number(), each);
    ++seen[v.producer() * each + v.number()];
    std::uint32_t& least = next[{consumer[i], v.producer()}];
    ASSERT_GE(v.number(), least) << "consumer " << consumer[i] << " got values of producer "
                                 << v.producer() << " out of order";
    least = v.number() + 1;
  }
  for (std::uint32_t i = 0; i < total; ++i)
    ASSERT_EQ(seen[i], 1u) << "value " << i % each << " of producer " << i / each;
}

TEST_P(ring_delivers, at_every_capacity) {
  for (std::uint32_t capacity : {2u, 4u, 32u, 1024u}) {
    const std::uint64_t most = capacity < 32 ? 10 : 200;
    const auto each = static_cast<std::uint32_t>(testing::scaled(most, most / 5));
    expect_delivery<small>(where(), {4, 64}, capacity, each);
  }
}

TEST_P(ring_delivers, large_values_whole) {
  expect_delivery<large>(where(), {2, 64}, 2, static_cast<std::uint32_t>(testing::scaled(20, 4)));
  expect_delivery<large>(where(), {4, 128}, 64, static_cast<std::uint32_t>(testing::scaled(50, 4)));
}

TEST_P(ring_delivers, between_many_blocks) {
  const auto each = static_cast<std::uint32_t>(testing::scaled(20, 4));
  expect_delivery<small>(where(), {32, 64}, 16, each);
}

TEST(ring_delivers_seeded, in_every_schedule) {
  testing::for_seeds(200, [] {
    expect_delivery<small>(device(), {2, 32}, 4, 6);
    expect_delivery<large>(device(), {2, 32}, 2, 3);
  });
}

}  // namespace
}  // namespace grosr::queue
