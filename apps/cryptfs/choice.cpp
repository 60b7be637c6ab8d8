#include "choice.hpp"

#include <algorithm>

namespace grosr::cryptfs {
namespace {

/// What a request counts in the mean of all; a single slow one does not decide.
constexpr double weight = 0.25;
/// What one request can say: more may as well be an accident of the thread that waited for it.
constexpr double most_slowdown = 12;
/// The device is as it was measured, about.
constexpr double usual_slowdown = 2;

double us_between(choice::time begin, choice::time end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

}  // namespace

estimate estimate::through(std::size_t small, double small_us, std::size_t large, double large_us) {
  estimate e;
  e.us_per_byte = std::max(0.0, (large_us - small_us) / static_cast<double>(large - small));
  e.fixed_us = std::max(0.0, small_us - e.us_per_byte * static_cast<double>(small));
  return e;
}

std::optional<choice::ticket> choice::give(std::size_t bytes, time now) {
  std::lock_guard guard(lock_);
  const double expected_us = device_.of(waiting_bytes_ + bytes);
  if (std::max(slowdown_, overdue(now)) * expected_us >= cpu_.of(bytes)) return std::nullopt;
  waiting_bytes_ += bytes;
  return waiting_.insert(waiting_.end(), {bytes, expected_us, now});
}

void choice::done(ticket t, time now) {
  std::lock_guard guard(lock_);
  const double took = us_between(t->began, now) / std::max(t->expected_us, 1e-3);
  slowdown_ += weight * (std::clamp(took, 1 / most_slowdown, most_slowdown) - slowdown_);
  if (took < usual_slowdown) pause_ = first_pause;
  next_probe_ = now + pause_;
  waiting_bytes_ -= t->bytes;
  waiting_.erase(t);
}

bool choice::probe_is_due(std::size_t bytes, time now) {
  std::lock_guard guard(lock_);
  if (bytes < least_probed || probing_ || !waiting_.empty() || now < next_probe_) return false;
  return probing_ = true;
}

void choice::probed(const std::optional<estimate>& device, time now) {
  std::lock_guard guard(lock_);
  probing_ = false;
  if (device) {
    device_ = *device;
    slowdown_ = 1;
  }
  // Also after a good one, which may have been luck: requests that the device does in time undo it.
  pause_ = std::min<std::chrono::steady_clock::duration>(2 * pause_, longest_pause);
  next_probe_ = now + pause_;
}

double choice::slowdown() const {
  std::lock_guard guard(lock_);
  return slowdown_;
}

/// What is behind the oldest request that the device has is at least as late as that one.
double choice::overdue(time now) const {
  if (waiting_.empty()) return 0;
  const given& oldest = waiting_.front();
  return us_between(oldest.began, now) / std::max(oldest.expected_us, 1e-3);
}

}  // namespace grosr::cryptfs
