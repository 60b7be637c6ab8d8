// shuffle moves the value of the source lane, whatever its type, from any lane to any.
#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(shuffle_of);

struct pair_of_words {
  std::uint32_t a, b;
};

// Lane i reads from lane (i * 7 + r) % 32: a different source in each lane, some sources read
// twice.
template <class T>
struct exchange {
  T* out;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = lane_id();
    for (unsigned r = 0; r < 32; ++r) {
      const unsigned source = (lane * (r | 6u) + r) % 32;
      out[r * 32 + lane] = shuffle(full_mask, static_cast<T>(lane * 3 + r), source);
    }
  }
};

template <class T, class Test>
void check_exchange(Test& test, simt::buffer<T> out) {
  test.run_on(exchange<T>{out.data()});
  std::vector<T> all(out.size());
  out.copy_to(all);
  for (unsigned r = 0; r < 32; ++r) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned source = (lane * (r | 6u) + r) % 32;
      ASSERT_EQ(all[r * 32 + lane], static_cast<T>(source * 3 + r)) << r << " " << lane;
    }
  }
}

class shuffle_type : public testing::device_test {
 public:
  template <class Kernel>
  void run_on(const Kernel& k) {
    run(1, 32, k);
  }
};
INSTANTIATE_TEST_SUITE_P(on, shuffle_type, ::testing::Values("host:0", "cuda:0"),
                         testing::device_test_name);

TEST_P(shuffle_type, of_1_byte) { check_exchange(*this, make<std::uint8_t>(1024)); }
TEST_P(shuffle_type, of_2_bytes) { check_exchange(*this, make<std::uint16_t>(1024)); }
TEST_P(shuffle_type, of_4_bytes) { check_exchange(*this, make<std::int32_t>(1024)); }
TEST_P(shuffle_type, of_8_bytes) { check_exchange(*this, make<std::uint64_t>(1024)); }
TEST_P(shuffle_type, of_a_float) { check_exchange(*this, make<float>(1024)); }
TEST_P(shuffle_type, of_a_double) { check_exchange(*this, make<double>(1024)); }

struct exchange_structs {
  unsigned* wrong;
  GROSR_DEVICE void operator()() const {
    const unsigned source = 31 - lane_id();
    const pair_of_words got = shuffle(full_mask, pair_of_words{lane_id(), ~lane_id()}, source);
    wrong[lane_id()] = got.a != source || got.b != ~source;
  }
};

TEST_P(shuffle_of, a_struct_of_8_bytes) {
  auto wrong = make<unsigned>(32);
  run(1, 32, exchange_structs{wrong.data()});
  for (unsigned w : contents(wrong)) EXPECT_EQ(w, 0u);
}

// The leader of each group of four hands out a ticket, as aggregation buffers do.
struct broadcast_in_fours {
  unsigned* out;
  GROSR_DEVICE void operator()() const {
    const unsigned lane = lane_id(), leader = lane & ~3u, mask = 0xfu << leader;
    const unsigned ticket = lane == leader ? 1000 + leader : 0;
    out[lane] = shuffle(mask, ticket, leader) + rank_in(mask, lane);
  }
};

TEST_P(shuffle_of, a_part_of_the_warp_stays_in_it) {
  auto out = make<unsigned>(32);
  run(1, 32, broadcast_in_fours{out.data()});
  const auto all = contents(out);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(all[lane], 1000 + lane);
}

}  // namespace
}  // namespace grosr::simt
