// When frames come from the cameras, and what became of them.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "hands.hpp"

namespace grosr::gesture {

/// Nanoseconds of the clock that all processes of the machine have in common.
inline std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// How a way is run: `warmup` frames that do not count, then `frames`, or those of so many seconds.
struct course {
  double fps = 0;  ///< 0: frames come as fast as they are taken
  std::uint32_t warmup = 0, frames = 0;
  double seconds = 1e9;

  std::uint64_t all() const { return std::uint64_t{warmup} + frames; }
};

/// A frame of both cameras that has come.
struct taken {
  std::uint64_t number = 0;
  std::int64_t captured_ns = 0;
};

/// The cameras. Each has one frame: when the next one comes, one that was not taken is lost. For
/// one thread.
class feed {
 public:
  /// Calls `counting_begins` before the first frame that counts is given out.
  feed(const course& c, std::function<void()> counting_begins);

  /// Waits for the next frame; none after the last one. It came when it was due, or, where this
  /// waited for it, when this woke up. Throws interrupted.
  std::optional<taken> next();
  /// Whether next() would give one without waiting.
  bool ready() const;
  /// Frames that count and were lost.
  std::uint64_t dropped() const { return dropped_; }

 private:
  std::int64_t due(std::uint64_t number) const;
  bool over() const;

  const course course_;
  std::function<void()> counting_begins_;
  std::uint64_t number_ = 0, dropped_ = 0;
  std::int64_t began_ns_, counts_from_ns_ = 0;
};

/// Where the ways deliver. For one thread at a time, frames in order.
class delivery {
 public:
  delivery(const course& c, const frame_shape& of);

  /// A frame's summary has come: makes events of it.
  void summary(const taken& t, const cell* of);
  /// Events have been delivered already.
  void events(const taken& t, std::int64_t delivered_ns, const event* first, std::size_t count);

  const std::vector<event>& events() const { return events_; }
  /// Of all frames that were not lost.
  const std::vector<std::uint64_t>& frames() const { return frames_; }
  /// Of those that count.
  const std::vector<double>& latencies_us() const { return latencies_us_; }
  std::uint64_t late() const { return late_; }  ///< of these, delivered when the next one was due
  double seconds() const;       ///< from the first one that counts to the last one delivered
  double frames_per_s() const;  ///< of those after the first one that counts
  std::size_t bytes() const;    ///< that this takes for what it keeps

 private:
  const course course_;
  hands hands_;
  std::vector<event> events_;
  std::vector<std::uint64_t> frames_;
  std::vector<double> latencies_us_;
  std::uint64_t late_ = 0;
  std::int64_t first_ns_ = 0, first_delivered_ns_ = 0, last_ns_ = 0;
};

}  // namespace grosr::gesture
