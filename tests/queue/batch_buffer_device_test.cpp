// What goes into a channel comes out once, whole, and its place is used again; nobody's place is
// freed early, and no slow producer holds a fast one back.
#include "grosr/queue/batch_buffer.hpp"

#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(channel);

template <element_layout L>
struct element {
  static constexpr grosr::element_layout layout = L;
  std::uint32_t number, load[4];

  GROSR_DEVICE static element make(std::uint32_t n) {
    element e{n, {}};
    for (std::uint32_t i = 0; i < 4; ++i) e.load[i] = n * 7 + i;
    return e;
  }
  GROSR_DEVICE bool whole() const {
    for (std::uint32_t i = 0; i < 4; ++i)
      if (load[i] != number * 7 + i) return false;
    return true;
  }
};

/// Every warp produces and consumes in turn: batches that are full wait in `due`, a counter, for
/// whoever comes. `most`: places a lane asks for at once; `alone`: each lane by itself.
template <element_layout L>
struct exchange {
  batch_buffer_ref<element<L>> channel;
  std::uint32_t* due;    ///< batches that wait for a consumer
  std::uint32_t* left;   ///< elements that are still to be consumed
  std::uint32_t* seen;   ///< by element: how often
  std::uint32_t* wrong;  ///< torn elements
  std::uint32_t steps, most;
  bool alone;

  GROSR_DEVICE void serve() const {
    simt::atomic_ref<std::uint32_t> batches(*due);
    const unsigned lane = simt::lane_id();
    std::uint64_t first = no_ticket;
    if (lane == 0) {
      std::uint32_t n = batches.load(simt::relaxed);
      while (n != 0 && !batches.compare_exchange(n, n - 1, simt::acquire)) {
      }
      if (n != 0) first = channel.deq();
    }
    first = simt::shuffle(simt::full_mask, first, 0);
    if (first == no_ticket) return;
    std::uint32_t place = padding;
    if (lane < channel.state().batch) place = channel.take(first + lane);
    const std::uint32_t some = simt::ballot(simt::full_mask, place != padding);
    if (place == padding) return;
    const element<L> e = channel.load(place);
    if (!e.whole()) simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    simt::atomic_ref<std::uint32_t>(seen[e.number]).fetch_add(1, simt::relaxed);
    // What is freed is written again: a reader that is not done would see it.
    if (!channel.load(place).whole())
      simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    channel.tfree(some, place);
    simt::atomic_ref<std::uint32_t>(*left).fetch_sub(1, simt::relaxed);
  }

  GROSR_DEVICE std::uint32_t thread() const {
    return simt::block_id() * simt::block_size() + simt::thread_id();
  }

  /// False: there was no room.
  GROSR_DEVICE bool produce(std::uint32_t step) const {
    const std::uint32_t mine = 1u << simt::lane_id(), n = 1 + (thread() + step) % most;
    const std::uint64_t first = channel.talloc(alone ? mine : simt::active_mask(), n);
    if (first == no_ticket) return false;
    for (std::uint32_t i = 0; i < n; ++i)
      channel.store(channel.place_of(first + i),
                    element<L>::make((thread() * steps + step) * most + i));
    // Some say it by themselves, and may be later than who asked after them.
    std::uint32_t batches = 0;
    if (alone || (thread() + step) % 3 == 0)
      batches = channel.enq(mine, first, n);
    else
      batches = channel.enq(simt::active_mask(), first, n);
    if (batches != 0) simt::atomic_ref<std::uint32_t>(*due).fetch_add(batches, simt::release);
    return true;
  }

  GROSR_DEVICE void operator()() const {
    std::uint32_t step = 0;
    for (unsigned turn = 0;; ++turn) {
      const bool more = step < steps, did = more && produce(step);
      if (did) ++step;
      simt::sync_warp();
      serve();
      simt::sync_warp();
      // Nothing else to do: what is collected is served, however little. Also when there is no
      // room: its places may be what all wait for.
      const bool idle = simt::ballot(simt::full_mask, did) == 0;
      if (idle && simt::lane_id() == 0 && channel.pad(1))
        simt::atomic_ref<std::uint32_t>(*due).fetch_add(1, simt::release);
      const std::uint32_t rest = simt::atomic_ref<std::uint32_t>(*left).load(simt::relaxed);
      if (simt::shuffle(simt::full_mask, rest, 0) == 0) break;
      simt::pause(turn < 3 ? turn : 3, "elements");
    }
  }
};

/// Total elements that all threads produce.
std::uint32_t total_of(std::uint32_t threads, std::uint32_t steps, std::uint32_t most) {
  std::uint32_t n = 0;
  for (std::uint32_t t = 0; t < threads; ++t)
    for (std::uint32_t s = 0; s < steps; ++s) n += 1 + (t + s) % most;
  return n;
}

template <element_layout L>
void exchange_all(device d, simt::shape grid, std::uint32_t capacity, std::uint32_t batch,
                  std::uint32_t steps, std::uint32_t most, bool alone) {
  const batch_buffer memory(d, {.capacity = capacity, .batch = batch}, element_bytes<element<L>>);
  const std::uint32_t threads = grid.blocks * grid.threads;
  const std::uint32_t total = total_of(threads, steps, most);
  simt::buffer<std::uint32_t> words(d, simt::space::device, 3);
  words.copy_from(std::vector<std::uint32_t>{0, total, 0});
  simt::buffer<std::uint32_t> seen(d, simt::space::device, std::size_t{threads} * steps * most);
  seen.copy_from(std::vector<std::uint32_t>(seen.size()));
  simt::run(d, grid,
            exchange<L>{batch_buffer_ref<element<L>>(memory.state()), words.data(),
                        words.data() + 1, seen.data(), words.data() + 2, steps, most, alone});
  std::vector<std::uint32_t> count(seen.size()), word(3);
  seen.copy_to(count);
  words.copy_to(word);
  EXPECT_EQ(word[2], 0u) << "torn elements";
  for (std::uint32_t t = 0; t < threads; ++t)
    for (std::uint32_t s = 0; s < steps; ++s)
      for (std::uint32_t i = 0; i < most; ++i)
        ASSERT_EQ(count[(t * steps + s) * most + i], i <= (t + s) % most ? 1u : 0u)
            << "thread " << t << ", step " << s << ", element " << i;
  // All that was reserved has come back, but for what is open in the last group.
  const batch_buffer_state end = memory.look();
  EXPECT_EQ(end.tail, total);
  EXPECT_EQ(end.ready, end.head);
  EXPECT_EQ(end.ready, total + end.padded);
  EXPECT_EQ(end.room, capacity - (total & ((1u << end.group_shift) - 1)));
}

TEST(channel_seeded, in_1000_schedules) {
  std::uint32_t round = 0;
  testing::for_seeds(
      1000,
      [&] {
        const std::uint32_t n = round++, batch = 1u << n % 6;
        if (n % 2 == 0)
          exchange_all<element_layout::rows>(device(), {1 + n % 3, 32}, 64, batch, 2 + n % 5, 1,
                                             n % 5 == 0);
        else
          exchange_all<element_layout::columns>(device(), {1 + n % 2, 64}, n % 7 == 1 ? 128 : 64,
                                                batch, 2, 1, n % 3 == 0);
      },
      1000);
}

TEST_P(channel, delivers_what_many_produce) {
  const auto steps = static_cast<std::uint32_t>(testing::scaled(100, 10));
  for (std::uint32_t capacity : {256u, 4096u})
    for (bool alone : {false, true}) {
      exchange_all<element_layout::rows>(where(), {4, 128}, capacity, 32, steps, 3, alone);
      exchange_all<element_layout::columns>(where(), {4, 128}, capacity, 8, steps, 7, alone);
    }
}

/// One lane reserves and is slow; others go on as long as there is room.
struct slow_one {
  batch_buffer_ref<std::uint32_t> channel;
  std::uint32_t* out;  ///< elements taken before the slow one was ready, and after
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const std::uint64_t slow = channel.talloc(1, 1);
    std::uint32_t batches = 0;
    for (std::uint32_t i = 0; i < 40; ++i) {
      const std::uint64_t t = channel.talloc(1, 1);
      channel.store(channel.place_of(t), 100 + i);
      batches += channel.enq(1, t, 1);
    }
    out[0] = batches;
    for (std::uint32_t k = 0; k < batches; ++k) {
      const std::uint64_t first = channel.deq();
      for (std::uint32_t i = 0; i < channel.state().batch; ++i) {
        const std::uint32_t place = channel.take(first + i);
        out[1] += channel.load(place) == 100 + k * channel.state().batch + i ? 1 : 0;
        channel.tfree(1, place);
      }
    }
    channel.store(channel.place_of(slow), 7);
    batches = channel.enq(1, slow, 1);
    if (channel.pad(1)) ++batches;
    out[2] = batches;
    const std::uint64_t first = channel.deq();
    for (std::uint32_t i = 0; i < channel.state().batch; ++i) {
      const std::uint32_t place = channel.take(first + i);
      if (place == padding) continue;
      out[3] += channel.load(place) == 7 ? 1 : 0;
      channel.tfree(1, place);
    }
  }
};

TEST_P(channel, a_slow_producer_holds_nobody_back) {
  const batch_buffer memory(where(), {.capacity = 64, .batch = 8}, 4);
  auto out = make<std::uint32_t>(4);
  out.copy_from(std::vector<std::uint32_t>(4));
  run(1, 32, slow_one{batch_buffer_ref<std::uint32_t>(memory.state()), out.data()});
  EXPECT_EQ(contents(out), (std::vector<std::uint32_t>{5, 40, 1, 1}));
}

/// Fills the channel, and asks for one more; then frees all but the first places.
struct fill_up {
  batch_buffer_ref<std::uint32_t> channel;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    std::uint64_t t[64];
    for (std::uint32_t i = 0; i < 64; ++i) t[i] = channel.talloc(1, 1);
    out[0] = t[63] == 63 ? 1 : 0;
    out[1] = channel.talloc(1, 1) == no_ticket ? 1 : 0;
    for (std::uint32_t i = 32; i < 64; ++i) channel.tfree(1, channel.place_of(t[i]));
    // In order: the first places are still in use.
    out[2] = channel.talloc(1, 1) == no_ticket ? 1 : 0;
    for (std::uint32_t i = 0; i < 32; ++i) channel.tfree(1, channel.place_of(t[i]));
    out[3] = channel.state().room;
    out[4] = channel.talloc(1, 32) == 64 ? 1 : 0;
  }
};

TEST_P(channel, is_full_until_the_first_places_come_back) {
  const batch_buffer memory(where(), {.capacity = 64}, 4);
  auto out = make<std::uint32_t>(5);
  run(1, 32, fill_up{batch_buffer_ref<std::uint32_t>(memory.state()), out.data()});
  EXPECT_EQ(contents(out), (std::vector<std::uint32_t>{1, 1, 1, 64, 1}));
}

TEST(channel_options, say_what_is_wrong) {
  auto said = [](const channel_options& o) {
    const error e = testing::error_of([&] { batch_buffer(device(), o, 4); });
    EXPECT_EQ(e.code(), errc::invalid_option);
    return std::string(e.what());
  };
  EXPECT_NE(said({.capacity = 32, .name = "rays"}).find("channel 'rays': a capacity of 32"),
            std::string::npos);
  EXPECT_NE(said({.capacity = 100}).find("power of two from 64"), std::string::npos);
  EXPECT_NE(said({.batch = 3}).find("a batch of 3"), std::string::npos);
  EXPECT_NE(said({.batch = 2048}).find("from 1 to 1024"), std::string::npos);
  EXPECT_NE(said({.capacity = 64, .batch = 128}).find("from 1 to 64"), std::string::npos);
  EXPECT_NE(said({.patience_us = 2'000'000}).find("at most a second"), std::string::npos);
}

}  // namespace
}  // namespace grosr::queue
