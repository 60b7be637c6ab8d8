// Moments and quantiles of durations, beside those of all of them, sorted.
#include "flow/duration_recorder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace grosr::flow {
namespace {

TEST(duration_recorder, is_as_the_sorted_ones) {
  std::mt19937_64 random(7);
  for (const double spread : {0.1, 1.0, 3.0}) {
    std::lognormal_distribution<double> draw(9, spread);
    duration_recorder r;
    r.start();
    std::vector<double> all;
    for (int i = 0; i < 20'000; ++i) {
      const auto ns = static_cast<std::int64_t>(draw(random));
      r.add(ns);
      all.push_back(static_cast<double>(ns) / 1e3);
    }
    std::sort(all.begin(), all.end());
    const distribution d = r.get();
    const double mean = std::accumulate(all.begin(), all.end(), 0.0) / 20'000;
    double squares = 0;
    for (const double us : all) squares += (us - mean) * (us - mean);
    EXPECT_EQ(d.count, 20'000u);
    EXPECT_NEAR(d.mean_us, mean, mean * 1e-9);
    EXPECT_NEAR(d.sigma_us, std::sqrt(squares / 20'000), d.sigma_us * 1e-6);
    EXPECT_NEAR(d.p50_us, all[9'999], all[9'999] * 0.016);
    EXPECT_NEAR(d.p99_us, all[19'799], all[19'799] * 0.016);
    EXPECT_NEAR(d.p999_us, all[19'979], all[19'979] * 0.016);
    EXPECT_EQ(d.max_us, all.back());
  }
}

TEST(duration_recorder, knows_short_ones_exactly) {
  for (std::int64_t ns = 0; ns < 64; ++ns) {
    duration_recorder r;
    r.start();
    r.add(ns);
    EXPECT_EQ(r.get().p50_us, static_cast<double>(ns) / 1e3);
    EXPECT_EQ(r.get().sigma_us, 0);
  }
}

TEST(duration_recorder, takes_whatever_it_gets) {
  duration_recorder r;
  r.add(5);
  EXPECT_EQ(r.get().count, 0u);
  r.start();
  r.add(-5);
  r.add(std::int64_t{1} << 62);
  EXPECT_EQ(r.get().count, 2u);
  EXPECT_EQ(r.get().p50_us, 0);
  EXPECT_GT(r.get().max_us, 1e10);
}

}  // namespace
}  // namespace grosr::flow
