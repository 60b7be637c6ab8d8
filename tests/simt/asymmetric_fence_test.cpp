// Of two threads that store and then load what the other stores, one sees the other, though only
// the one of them that is rare pays for a fence.
#include "grosr/simt/asymmetric_fence.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support/scale.hpp"

namespace grosr::simt {
namespace {

struct alignas(128) word {
  std::atomic<unsigned> value{0};

  void wait_for(unsigned wanted) const {
    for (unsigned turn = 1; value.load(std::memory_order_acquire) != wanted; ++turn)
      if (turn % 4096 == 0) std::this_thread::yield();
  }
};

TEST(asymmetric_fence, lets_one_side_see_the_other) {
  const auto rounds = static_cast<unsigned>(testing::scaled(20'000, 1000));
  word often, rarely, begin, seen_often, ended;
  std::thread other([&] {
    for (unsigned r = 1; r <= rounds; ++r) {
      begin.wait_for(r);
      often.value.store(r, std::memory_order_relaxed);
      light_fence();
      seen_often.value.store(rarely.value.load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
      ended.value.store(r, std::memory_order_release);
    }
  });
  unsigned missed = 0;
  for (unsigned r = 1; r <= rounds; ++r) {
    begin.value.store(r, std::memory_order_release);
    for (unsigned i = 0; i < r % 300; ++i) asm volatile("");  // so that the stores meet
    rarely.value.store(r, std::memory_order_relaxed);
    heavy_fence();
    const unsigned seen = often.value.load(std::memory_order_relaxed);
    ended.wait_for(r);
    missed += seen != r && seen_often.value.load(std::memory_order_relaxed) != r ? 1 : 0;
  }
  other.join();
  EXPECT_EQ(missed, 0u);
}

}  // namespace
}  // namespace grosr::simt
