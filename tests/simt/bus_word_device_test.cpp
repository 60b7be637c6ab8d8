// A bus word that is seen with its validity word is seen whole, in both directions across the bus.
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(bus_words);

GROSR_DEVICE inline bus_word word_of_lap(std::uint32_t lap) {
  return {{lap * 3, lap * 5, ~lap, lap}};
}
GROSR_DEVICE inline bool is_whole(const bus_word& v) {
  return v.w[0] == v.w[3] * 3 && v.w[1] == v.w[3] * 5 && v.w[2] == ~v.w[3];
}

// The host writes lap n into `there`; the device answers with lap n in `back`.
struct echo {
  bus_word* there;
  bus_word* back;
  std::uint32_t laps;
  std::uint32_t* torn;
  GROSR_DEVICE void operator()() const {
    if (lane_id() != 0) return;
    for (std::uint32_t lap = 1; lap <= laps; ++lap) {
      bus_word v;
      wait_until(
          [&] {
            v = bus_load(there);
            return v.w[3] == lap;
          },
          forever, nullptr, "the next lap");
      if (!is_whole(v)) ++*torn;
      bus_store(back, word_of_lap(lap));
    }
  }
};

TEST_P(bus_words, are_seen_whole) {
  const auto laps = static_cast<std::uint32_t>(testing::scaled(2000));
  auto words = make<bus_word>(2, space::pinned);
  auto torn = make<std::uint32_t>(1);
  stream s(where());
  launch(s, {1, 32}, echo{&words[0], &words[1], laps, torn.data()});
  for (std::uint32_t lap = 1; lap <= laps; ++lap) {
    bus_store(&words[0], word_of_lap(lap));
    bus_word v;
    const auto r = wait_until(
        [&] {
          v = bus_load(&words[1]);
          return v.w[3] == lap;
        },
        clock_ns() + 10'000'000'000, nullptr, "the echo");
    ASSERT_EQ(r, wait_result::ready) << lap;
    ASSERT_TRUE(is_whole(v)) << lap;
  }
  s.wait();
  EXPECT_EQ(contents(torn)[0], 0u);
}

}  // namespace
}  // namespace grosr::simt
