// Which of a device and the CPU is to have a request: the one that is sooner done, by how long they
// took so far. When the device becomes slow, because other programs use it, requests go to the CPU,
// and the device is probed now and then by requests that nobody waits for.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>

namespace grosr::cryptfs {

/// How long a request takes where nothing else is to be done: a line through two measured points.
struct estimate {
  double fixed_us = 0, us_per_byte = 0;

  double of(std::size_t bytes) const { return fixed_us + us_per_byte * static_cast<double>(bytes); }
  static estimate through(std::size_t small, double small_us, std::size_t large, double large_us);
};

/// Thread-safe. Has no clock of its own: callers say what time it is.
class choice {
 public:
  using time = std::chrono::steady_clock::time_point;

  /// A probe is worth it for requests of so many bytes, which devices are used for.
  static constexpr std::size_t least_probed = 128 << 10;
  /// The first probe comes so long after the device's last request, or after the last probe; each
  /// one that finds the device slow doubles it, up to the second number.
  static constexpr std::chrono::milliseconds first_pause{10}, longest_pause{640};

  choice(const estimate& device, const estimate& cpu) : device_(device), cpu_(cpu) {}

  /// A request that the device has.
  struct given {
    std::size_t bytes;
    double expected_us;  ///< without slowdown()
    time began;
  };
  using ticket = std::list<given>::iterator;

  /// The device is to have a request of so many bytes; else the CPU is.
  std::optional<ticket> give(std::size_t bytes, time now);
  /// The device has done it, or failed.
  void done(ticket t, time now);

  /// Whether the CPU got a request of so many bytes, and the device is to be probed now. Who is
  /// told so calls probed().
  bool probe_is_due(std::size_t bytes, time now);
  /// What the probe measured; nothing: the device is slower than the CPU.
  void probed(const std::optional<estimate>& device, time now);

  /// How many times as long as estimated the device takes.
  double slowdown() const;

 private:
  double overdue(time now) const;

  mutable std::mutex lock_;
  estimate device_;
  const estimate cpu_;
  std::list<given> waiting_;       // oldest first
  std::size_t waiting_bytes_ = 0;  // of these
  double slowdown_ = 1;
  std::chrono::steady_clock::duration pause_ = first_pause;
  time next_probe_{};
  bool probing_ = false;
};

}  // namespace grosr::cryptfs
