// How long something takes, over many times, in memory that does not grow.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "grosr/flow/graph.hpp"

namespace grosr::flow {

/// Moments, and counts of durations that are about as long: each doubling has 32 of these, so that
/// quantiles are right to 1.6% (HdrHistogram; Tene). Mean and variance by Welford, 1962.
class duration_recorder {
 public:
  /// Takes the memory that it needs; nothing is counted before.
  void start() { counts_.resize(place_of(longest) + 1); }

  void add(std::int64_t ns) {
    if (counts_.empty()) return;
    const auto n = static_cast<std::uint64_t>(std::clamp<std::int64_t>(ns, 0, longest));
    ++all_;
    const double x = static_cast<double>(n), before = x - mean_;
    mean_ += before / static_cast<double>(all_);
    squares_ += before * (x - mean_);
    max_ = std::max(max_, n);
    ++counts_[place_of(n)];
  }

  distribution get() const {
    distribution d;
    d.count = all_;
    if (all_ == 0) return d;
    d.mean_us = mean_ / 1e3;
    d.sigma_us = std::sqrt(squares_ / static_cast<double>(all_)) / 1e3;
    d.p50_us = quantile(0.5);
    d.p99_us = quantile(0.99);
    d.p999_us = quantile(0.999);
    d.max_us = static_cast<double>(max_) / 1e3;
    return d;
  }

 private:
  static constexpr unsigned parts_log2 = 5;
  static constexpr std::int64_t longest = std::int64_t{1} << 45;  // ten hours

  static std::size_t place_of(std::uint64_t ns) {
    constexpr std::uint64_t parts = 1u << parts_log2;
    if (ns < parts) return ns;
    const unsigned doublings = static_cast<unsigned>(std::bit_width(ns)) - 1 - parts_log2;
    return doublings * parts + (ns >> doublings);
  }
  /// The middle of what is counted at a place.
  static double middle_of(std::size_t place) {
    constexpr std::size_t parts = 1u << parts_log2;
    if (place < 2 * parts) return static_cast<double>(place);
    const std::size_t doublings = place / parts - 1;
    const double first =
        std::ldexp(static_cast<double>(place % parts + parts), static_cast<int>(doublings));
    return first + std::ldexp(0.5, static_cast<int>(doublings));
  }

  double quantile(double q) const {
    const auto rank = static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(all_)));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= rank) return std::min(middle_of(i), static_cast<double>(max_)) / 1e3;
    }
    return static_cast<double>(max_) / 1e3;
  }

  std::vector<std::uint64_t> counts_;
  std::uint64_t all_ = 0, max_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace grosr::flow
