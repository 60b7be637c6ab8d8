// match_any partitions its mask by value.
#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(match);

struct match_values {
  unsigned* out;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    out[lane] = match_any(full_mask, lane % 5);
    out[32 + lane] = match_any(full_mask, 7);
    out[64 + lane] = match_any(full_mask, lane);
    out[96 + lane] = match_any(full_mask, std::uint64_t{lane / 16} << 40);  // differ above bit 32
    const unsigned half = lane < 16 ? 0xffffu : 0xffff0000u;
    if (lane < 16) {
      out[128 + lane] = match_any(half, lane & 1);
    } else {
      out[128 + lane] = match_any(half, lane & 1);
    }
  }
};

TEST_P(match, gives_the_lanes_with_the_same_value) {
  auto out = make<unsigned>(160);
  run(1, 32, match_values{out.data()});
  const auto all = contents(out);
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned same = 0;
    for (unsigned other = lane % 5; other < 32; other += 5) same |= 1u << other;
    EXPECT_EQ(all[lane], same);
    EXPECT_EQ(all[32 + lane], full_mask);
    EXPECT_EQ(all[64 + lane], 1u << lane);
    EXPECT_EQ(all[96 + lane], lane < 16 ? 0xffffu : 0xffff0000u);
    const unsigned parity = lane & 1 ? 0xaaaaaaaau : 0x55555555u;
    EXPECT_EQ(all[128 + lane], parity & (lane < 16 ? 0xffffu : 0xffff0000u));
  }
}

}  // namespace
}  // namespace grosr::simt
