// Times of one thing done many times, and what is said of them. Microseconds throughout.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

namespace grosr::tool {

class samples {
 public:
  samples() = default;
  explicit samples(std::vector<double> microseconds) : sorted_(std::move(microseconds)) {
    std::sort(sorted_.begin(), sorted_.end());
  }

  std::size_t count() const { return sorted_.size(); }
  double min() const { return sorted_.empty() ? 0 : sorted_.front(); }
  double max() const { return sorted_.empty() ? 0 : sorted_.back(); }
  double median() const { return quantile(0.5); }
  double mean() const {
    if (sorted_.empty()) return 0;
    return std::accumulate(sorted_.begin(), sorted_.end(), 0.0) / static_cast<double>(count());
  }
  /// Standard deviation, of the population that these are samples of; 0 of fewer than two.
  double deviation() const {
    if (count() < 2) return 0;
    const double middle = mean();
    double squares = 0;
    for (const double s : sorted_) squares += (s - middle) * (s - middle);
    return std::sqrt(squares / static_cast<double>(count() - 1));
  }

  /// The smallest sample that at least this share of the samples does not exceed.
  double quantile(double share) const {
    if (sorted_.empty()) return 0;
    const double rank = std::ceil(share * static_cast<double>(sorted_.size()));
    return sorted_[std::min(sorted_.size() - 1, static_cast<std::size_t>(std::max(rank, 1.0)) - 1)];
  }

 private:
  std::vector<double> sorted_;
};

using clock = std::chrono::steady_clock;

inline double microseconds_since(clock::time_point began) {
  return std::chrono::duration<double, std::micro>(clock::now() - began).count();
}

/// How long `f()` takes, in microseconds.
template <class F>
double timed(F&& f) {
  const auto began = clock::now();
  f();
  return microseconds_since(began);
}

}  // namespace grosr::tool
