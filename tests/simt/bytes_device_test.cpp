// What is done to the bytes of words is the same on all devices.
#include "grosr/simt/bytes.hpp"
#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(bytes);

struct both {
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t n = thread_id(), a = n * 2654435761u, b = ~a * 40503u;
    out[2 * n] = dot_bytes(a, b, n);
    out[2 * n + 1] = pick_bytes(a, b, n | (n << 4 & 0x70) | 0x3500);
  }
};

TEST_P(bytes, are_multiplied_and_picked) {
  constexpr unsigned threads = 64;
  auto out = make<std::uint32_t>(2 * threads);
  run(1, threads, both{out.data()});
  const auto all = contents(out);
  for (std::uint32_t n = 0; n < threads; ++n) {
    const std::uint32_t a = n * 2654435761u, b = ~a * 40503u;
    std::uint32_t sum = n, picked = 0;
    const std::uint32_t which[] = {n & 7, ((n >> 4) | n) & 7, 5, 3};
    for (unsigned i = 0; i < 4; ++i) {
      sum += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
      picked |= ((which[i] < 4 ? a : b) >> 8 * (which[i] % 4) & 0xff) << 8 * i;
    }
    ASSERT_EQ(all[2 * n], sum) << n;
    ASSERT_EQ(all[2 * n + 1], picked) << n;
  }
}

TEST_P(bytes, are_multiplied_without_signs) {
  EXPECT_EQ(dot_bytes(0xff804001, 0xff800281, 7), 0xffu * 0xff + 0x80 * 0x80 + 0x40 * 2 + 0x81 + 7);
}

}  // namespace
}  // namespace grosr::simt
