// What hands over the screen do, from summaries of the points near it, one after the other.
#pragma once

#include <string>
#include <vector>

#include "stages.hpp"

namespace grosr::gesture {

enum class act : std::uint32_t { enter, move, push, release, leave };

struct event {
  std::uint64_t frame = 0;
  act what = act::enter;
  std::uint32_t hand = 0;
  std::int32_t x = 0, y = 0, z = 0;  ///< the hand's middle, and its point nearest to the screen
  friend bool operator==(const event&, const event&) = default;
};
/// "frame 12: hand 0 pushes at -12.0, 40.3, 98.1 mm"
std::string text_of(const event& e);

/// Hands are regions of cells with points, at most two cells apart. One that was seen in the frame
/// before keeps its number if it has not gone farther than 120 mm. It pushes at less than 120 mm
/// from the screen, and releases at more than 150 mm. Not thread-safe.
class hands {
 public:
  explicit hands(const frame_shape& of);

  /// What happened by this frame: valid until the next call.
  const std::vector<event>& see(std::uint64_t frame, const cell* summary);

 private:
  struct hand {
    std::uint32_t number = 0, points = 0;
    std::int32_t x = 0, y = 0, z = 0;
    bool pushes = false, seen = false;
  };
  void find_regions(const cell* summary);
  void happens(act what, const hand& h, std::uint64_t frame);

  const std::uint32_t least_in_cell_, least_in_hand_;
  std::vector<hand> known_, regions_;
  std::vector<std::uint32_t> reached_;
  std::vector<bool> free_;  // cells with points, in no region yet
  std::vector<event> events_;
};

}  // namespace grosr::gesture
