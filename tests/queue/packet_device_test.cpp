// A packet is taken when it is whole, and never before: not when any word of it is missing, not
// when it is the one of the lap before.
#include "grosr/queue/packet.hpp"

#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(packet_is_taken);

GROSR_DEVICE packet content_of(std::uint32_t n) {
  packet l;
  for (std::uint32_t i = 0; i < packet_content; ++i) l.word[i] = n * 1000 + i;
  return l;
}

GROSR_DEVICE bool is_content_of(const packet& l, std::uint32_t n) {
  for (std::uint32_t i = 0; i < packet_content; ++i)
    if (l.word[i] != n * 1000 + i) return false;
  return true;
}

// Lane i tries to read the packets of words (i, i + 32, ...) of all 256 sets of words written.
struct read_parts {
  const simt::bus_word* packets;
  std::uint32_t* taken;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t set = simt::lane_id(); set < 256; set += 32) {
      packet l{};
      const bool whole = read_packet(packets + set * packet_words, l, 7);
      taken[set] = whole ? (is_content_of(l, 7) ? 1 : 2) : 0;
    }
  }
};

TEST_P(packet_is_taken, only_when_all_words_are_there) {
  for (std::uint32_t before : {0u, 6u, 8u, 0xffffffffu}) {
    auto packets = make<simt::bus_word>(256 * packet_words, simt::space::pinned);
    auto taken = make<std::uint32_t>(256);
    for (std::uint32_t set = 0; set < 256; ++set) {
      simt::bus_word* at = &packets[set * packet_words];
      write_packet(at, content_of(1), before);
      simt::bus_word whole[packet_words];
      write_packet(whole, content_of(7), 7);
      for (unsigned k = 0; k < packet_words; ++k)
        if (set >> k & 1) at[k] = whole[k];
      packet l;
      EXPECT_EQ(read_packet(at, l, 7), set == 255);
    }
    run(1, 32, read_parts{packets.data(), taken.data()});
    const auto all = contents(taken);
    for (std::uint32_t set = 0; set < 256; ++set) ASSERT_EQ(all[set], set == 255 ? 1u : 0u);
  }
}

// Every lane gets every content word from a packet spread over the warp.
struct spread {
  const simt::bus_word* packets;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    const simt::bus_word mine = simt::bus_load(packets + simt::lane_id());
    for (unsigned k = 0; k < 4; ++k)
      for (unsigned i = 0; i < packet_content; ++i)
        if (packet_word(mine, k * packet_words, i) != k * 1000 + i) *wrong = 1;
  }
};

TEST_P(packet_is_taken, by_a_warp_word_by_word) {
  auto packets = make<simt::bus_word>(4 * packet_words, simt::space::pinned);
  for (unsigned k = 0; k < 4; ++k) write_packet(&packets[k * packet_words], content_of(k), 1);
  auto wrong = make<std::uint32_t>(1);
  run(1, 32, spread{packets.data(), wrong.data()});
  EXPECT_EQ(contents(wrong)[0], 0u);
}

// One place, many laps: the device reads each packet once and says so, the host then writes the
// next.
struct read_laps {
  const simt::bus_word* place;
  std::uint32_t* credit;
  std::uint32_t laps;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    for (std::uint32_t lap = 1; lap <= laps; ++lap) {
      packet l{};
      simt::wait_until([&] { return read_packet(place, l, lap); }, simt::forever, nullptr,
                       "a packet");
      if (!is_content_of(l, lap)) *wrong = lap;
      simt::atomic_ref<std::uint32_t, simt::scope::system>(*credit).store(lap, simt::release);
    }
  }
};

TEST_P(packet_is_taken, in_every_lap_once) {
  const auto laps = static_cast<std::uint32_t>(testing::scaled(2000, 100));
  auto place = make<simt::bus_word>(packet_words, simt::space::pinned);
  auto credit = make<std::uint32_t>(1, simt::space::pinned);
  auto wrong = make<std::uint32_t>(1);
  simt::stream s(where());
  simt::launch(s, {1, 32}, read_laps{place.data(), credit.data(), laps, wrong.data()});
  simt::atomic_ref<std::uint32_t, simt::scope::system> done(credit[0]);
  for (std::uint32_t lap = 1; lap <= laps; ++lap) {
    while (done.load(simt::acquire) != lap - 1) {
    }
    write_packet(place.data(), content_of(lap), lap);
  }
  s.wait();
  EXPECT_EQ(contents(wrong)[0], 0u);
}

// The same between two lanes: the schedule may stop the writer between any two words.
struct write_and_read {
  simt::bus_word* place;
  std::uint32_t* credit;
  std::uint32_t laps;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    if (simt::block_id() == 0) {
      read_laps{place, credit, laps, wrong}();
      return;
    }
    for (std::uint32_t lap = 1; lap <= laps; ++lap) {
      simt::wait_until([&] { return simt::atomic_ref(*credit).load(simt::acquire) == lap - 1; },
                       simt::forever, nullptr, "the reader");
      write_packet(place, content_of(lap), lap);
    }
  }
};

TEST(packet_is_taken_seeded, in_every_lap_once) {
  testing::for_seeds(500, [] {
    simt::bus_word place[packet_words] = {};
    std::uint32_t credit = 0, wrong = 0;
    simt::run(device(), {2, 32}, write_and_read{place, &credit, 5, &wrong});
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(credit, 5u);
  });
}

TEST(laps, begin_at_one_and_follow_each_other) {
  for (std::uint32_t capacity : {2u, 8u, 1u << 30}) {
    EXPECT_EQ(lap_of(0, capacity), 1u);
    EXPECT_EQ(lap_of(capacity - 1, capacity), 1u);
    EXPECT_EQ(lap_of(capacity, capacity), 2u);
  }
}

}  // namespace
}  // namespace grosr::queue
