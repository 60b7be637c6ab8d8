#include "hands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace grosr::gesture {
namespace {

constexpr std::int32_t cells_apart = 2, goes_far = 120 * units, has_moved = 2 * units;
constexpr std::int32_t push_at = 120 * units, release_at = 150 * units;

const char* verb(act a) {
  switch (a) {
    case act::enter:
      return "enters";
    case act::move:
      return "moves";
    case act::push:
      return "pushes";
    case act::release:
      return "releases";
    default:
      return "leaves";
  }
}

}  // namespace

std::string text_of(const event& e) {
  const auto mm = [](std::int32_t n) { return static_cast<double>(n) / units; };
  return fmt::format("frame {}: hand {} {} at {:.1f}, {:.1f}, {:.1f} mm", e.frame, e.hand,
                     verb(e.what), mm(e.x), mm(e.y), mm(e.z));
}

hands::hands(const frame_shape& of)
    : least_in_cell_(std::max(1u, static_cast<std::uint32_t>(of.pixels() / 25'600))),
      least_in_hand_(std::max(2u, static_cast<std::uint32_t>(of.pixels() / 1'600))),
      free_(cells) {}

void hands::find_regions(const cell* summary) {
  regions_.clear();
  for (std::size_t i = 0; i < cells; ++i) free_[i] = summary[i].count >= least_in_cell_;
  for (std::uint32_t first = 0; first < cells; ++first) {
    if (!free_[first]) continue;
    std::int64_t x = 0, y = 0, points = 0;
    std::uint32_t nearest = 0;
    free_[first] = false;
    reached_.assign(1, first);
    for (std::size_t next = 0; next < reached_.size(); ++next) {
      const cell& c = summary[reached_[next]];
      const auto column = static_cast<std::int32_t>(reached_[next]) % cell_columns;
      const auto row = static_cast<std::int32_t>(reached_[next]) / cell_columns;
      points += c.count;
      x += std::int64_t{c.count} * column * cell_side + c.x;
      y += std::int64_t{c.count} * row * cell_side + c.y;
      nearest = std::max(nearest, c.nearest);
      for (std::int32_t v = std::max(row - cells_apart, 0);
           v <= std::min(row + cells_apart, cell_rows - 1); ++v)
        for (std::int32_t u = std::max(column - cells_apart, 0);
             u <= std::min(column + cells_apart, cell_columns - 1); ++u) {
          const auto at = static_cast<std::uint32_t>(v * cell_columns + u);
          if (!free_[at]) continue;
          free_[at] = false;
          reached_.push_back(at);
        }
    }
    if (points < least_in_hand_) continue;
    regions_.push_back({0, static_cast<std::uint32_t>(points),
                        static_cast<std::int32_t>(x / points) - cell_columns * cell_side / 2,
                        static_cast<std::int32_t>(y / points) - cell_rows * cell_side / 2,
                        near_screen - static_cast<std::int32_t>(nearest)});
  }
}

void hands::happens(act what, const hand& h, std::uint64_t frame) {
  events_.push_back({frame, what, h.number, h.x, h.y, h.z});
}

const std::vector<event>& hands::see(std::uint64_t frame, const cell* summary) {
  events_.clear();
  find_regions(summary);
  for (hand& h : known_) {
    hand* nearest = nullptr;
    std::int64_t best = std::int64_t{goes_far} * goes_far;
    for (hand& r : regions_) {
      const std::int64_t x = r.x - h.x, y = r.y - h.y, apart = x * x + y * y;
      if (r.seen || apart > best) continue;
      best = apart - 1;  // of two as far, the first
      nearest = &r;
    }
    h.seen = nearest != nullptr;
    if (!h.seen) {
      happens(act::leave, h, frame);
      continue;
    }
    nearest->seen = true;
    const bool moved =
        std::abs(nearest->x - h.x) + std::abs(nearest->y - h.y) + std::abs(nearest->z - h.z) >=
        has_moved;
    if (moved) {
      h.x = nearest->x;
      h.y = nearest->y;
      h.z = nearest->z;
      happens(act::move, h, frame);
    }
    if (!h.pushes && h.z < push_at) {
      h.pushes = true;
      happens(act::push, h, frame);
    } else if (h.pushes && h.z > release_at) {
      h.pushes = false;
      happens(act::release, h, frame);
    }
  }
  std::erase_if(known_, [](const hand& h) { return !h.seen; });
  for (hand& r : regions_) {
    if (r.seen) continue;
    while (std::any_of(known_.begin(), known_.end(),
                       [&](const hand& h) { return h.number == r.number; }))
      ++r.number;
    happens(act::enter, r, frame);
    r.pushes = r.z < push_at;
    if (r.pushes) happens(act::push, r, frame);
    known_.push_back(r);
  }
  return events_;
}

}  // namespace grosr::gesture
