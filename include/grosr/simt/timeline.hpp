// Streams whose work is numbered, so that other streams and the host can wait for a part of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "grosr/simt/launch.hpp"

namespace grosr::simt {

class timeline_state;

/// A point in a timeline: all that was put into its stream before. A value, which keeps the stream.
/// Of no timeline: nothing is waited for. Thread-safe.
class stream_point {
 public:
  stream_point() = default;

  bool is_in(const timeline_state* t) const { return timeline_.get() == t; }
  /// Whether this one's being over says that the other is: it is in the same timeline, and not
  /// before it.
  bool covers(const stream_point& other) const {
    return other.timeline_ == nullptr || (timeline_ == other.timeline_ && number_ >= other.number_);
  }

  /// Whether all before it has ended. Throws as stream::done().
  bool has_happened() const;
  /// Waits until it has. Throws as stream::wait().
  void wait() const;

 private:
  friend class timeline;
  stream_point(std::shared_ptr<timeline_state> t, std::uint64_t number)
      : timeline_(std::move(t)), number_(number) {}

  std::shared_ptr<timeline_state> timeline_;
  std::uint64_t number_ = 0;
};

/// The time at which a stream comes to a place. A value. Thread-safe. Of no place: never known.
class stream_time {
 public:
  struct place {
    virtual ~place() = default;
    virtual std::optional<std::int64_t> ns() = 0;
  };
  stream_time() = default;
  explicit stream_time(std::shared_ptr<place> p) : place_(std::move(p)) {}

  /// Nanoseconds of the steady clock; on a GPU, within some microseconds of it. None: the stream
  /// has not come there, or has failed.
  std::optional<std::int64_t> ns() const { return place_ ? place_->ns() : std::nullopt; }

 private:
  std::shared_ptr<place> place_;
};

/// A set of points that keeps the newest of each timeline: a wait for these is a wait for all
/// added.
class stream_points {
 public:
  void add(const stream_point& p) {
    for (const stream_point& other : all_)
      if (other.covers(p)) return;
    std::erase_if(all_, [&](const stream_point& other) { return p.covers(other); });
    all_.push_back(p);
  }
  /// Without those of which f(point).
  template <class F>
  void forget(const F& f) {
    std::erase_if(all_, f);
  }
  void clear() { all_.clear(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<stream_point> all_;
};

/// A stream that knows points in it (Vulkan: a timeline semaphore). Nothing is recorded before
/// somebody asks, so a chain of work in one stream costs nothing. A wait for a point that here()
/// returned may also wait for later work; a wait for one that mark() returned does not. One thread
/// at a time may use a timeline; its points are thread-safe.
class timeline {
 public:
  /// Throws as stream().
  explicit timeline(device d);

  const device& where() const;
  /// What is put there comes behind the copies so far, and not behind later ones: it is asked for
  /// each time. Throws as copy().
  stream& queue();

  /// Puts a copy into the stream, of pinned memory or memory of the stream's device. On a GPU it
  /// may be put there later, together with others, and by whichever thread asks first: when queue()
  /// is called, or a point behind it is waited for or asked for. Short ones are made by a kernel,
  /// which needs room on a multiprocessor. Throws error(device_lost); whoever waits for it gets
  /// that, too.
  void copy(void* to, const void* from, std::size_t bytes);

  /// Behind all that the stream holds now.
  stream_point here();
  /// As here(), and records an event at once, so that a wait covers no later work.
  stream_point mark();

  /// Behind all that the stream holds now. Never known where it cannot be asked for.
  stream_time time();

  /// What is put into this stream from now on begins after `p`. Where that is in a stream of the
  /// other kind of device, this thread waits. Throws as stream::wait() where it is known that what
  /// was before `p` failed.
  void wait_for(const stream_point& p);

 private:
  std::shared_ptr<timeline_state> state_;
  stream_points waited_for_;  // in the stream
};

/// Queues a copy: pinned memory, or memory of devices of the stream's kind. Throws
/// error(device_lost).
void copy_bytes(stream& s, void* to, const void* from, std::size_t bytes);

}  // namespace grosr::simt
