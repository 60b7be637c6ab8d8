// Ways to bring frames from the cameras to events.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "feed.hpp"
#include "recording.hpp"
#include "usage.hpp"

namespace grosr::gesture {

struct setup {
  device where;
  unsigned radius = 2;
  unsigned in_flight = 4;  ///< frames at a time, of ways that begin one before the last is done
  unsigned threads = 0;    ///< of flow's executor
  const recording& frames;

  const frame_shape& shape() const { return frames.shape; }
};

/// What a run has taken, from the first frame that counts to the last one.
struct run_usage {
  cpu_time began, ended;
  unsigned threads = 0;
  std::uint64_t dropped = 0;
  std::uint64_t other_bytes = 0;  ///< resident memory of processes that it started
};

/// Made once for a run. Frame n is frame n of the recording, which is shown in a loop.
class way {
 public:
  virtual ~way() = default;
  /// Frames of the whole course go in, and what they show to `to`. Throws interrupted.
  virtual run_usage run(const course& c, delivery& to) = 0;
  /// What a reader of its figures should know.
  virtual std::vector<std::string> notes() const { return {}; }
};

struct named_way {
  const char* name;
  const char* text;
  std::unique_ptr<way> (*make)(const setup& s);
};
const std::vector<named_way>& all_ways();

std::unique_ptr<way> make_host(const setup& s);
std::unique_ptr<way> make_pipes(const setup& s);
std::unique_ptr<way> make_modular(const setup& s);
std::unique_ptr<way> make_by_hand(const setup& s);
std::unique_ptr<way> make_best_by_hand(const setup& s);
std::unique_ptr<way> make_flow(const setup& s);

/// A run of this process: calls f(feed), and measures from the first frame that counts.
template <class F>
run_usage run_here(const course& c, const F& f) {
  run_usage u;
  feed from(c, [&] { u.began = cpu_time::now(); });
  f(from);
  u.ended = cpu_time::now();
  u.threads = thread_count();
  u.dropped = from.dropped();
  return u;
}

}  // namespace grosr::gesture
