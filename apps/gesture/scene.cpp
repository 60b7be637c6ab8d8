#include "scene.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/errors.hpp"
#include "cli/progress.hpp"

namespace grosr::gesture {
namespace {

struct vec {
  double x, y, z;
  friend vec operator-(const vec& a, const vec& b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
};
double dot(const vec& a, const vec& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

/// A number from 0 to 1 that looks like chance, of each pixel of each frame.
class chance {
 public:
  explicit chance(std::uint64_t seed) : state_(seed) {}
  double next() {
    std::uint64_t z = state_ += 0x9e37'79b9'7f4a'7c15;
    z = (z ^ z >> 30) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ z >> 27) * 0x94d0'49bb'1331'11eb;
    return static_cast<double>((z ^ z >> 31) >> 11) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

constexpr double palm = 50, no_hit = 1e9;  // millimetres
constexpr double user_at = 650, walls_at = 2000;

/// Where a hand is. A path returns after 30 frames, so that a recording may be shown in a loop.
vec palm_at(unsigned hand, std::uint32_t frame, double turn) {
  const double t = 2 * 3.14159265358979 * (frame / 30.0 + turn);
  const double side = hand == 0 ? -1 : 1;
  return {side * 140 + 90 * std::sin(t), 20 + 80 * std::cos(t + hand),
          210 + 110 * std::sin(2 * t + 2 * hand)};
}

/// How far along a ray from `from` something is first hit, in parts of `ray`.
double depth_along(const vec& from, const vec& ray, const vec* palms) {
  double nearest = no_hit;
  const auto hit = [&](double d) {
    if (d > 0) nearest = std::min(nearest, d);
  };
  hit((user_at - from.z) / ray.z);
  hit(((ray.x > 0 ? walls_at : -walls_at) - from.x) / ray.x);
  for (unsigned hand = 0; hand < 2; ++hand) {
    const vec to = palms[hand] - from;
    const double along = dot(to, ray) / dot(ray, ray);
    const double inside = palm * palm - (dot(to, to) - along * along * dot(ray, ray));
    if (inside >= 0) hit(along - std::sqrt(inside / dot(ray, ray)));
  }
  return nearest;
}

void draw_frame(const frame_shape& s, const camera& c, const vec* palms, chance noise,
                std::uint16_t* depths) {
  const vec from{double(c.at[0]) / units, double(c.at[1]) / units, double(c.at[2]) / units};
  for (std::uint32_t v = 0; v < s.height; ++v)
    for (std::uint32_t u = 0; u < s.width; ++u) {
      const auto part = [&](unsigned a) {
        return (c.corner[a] + double(u) * c.per_column[a] + double(v) * c.per_row[a]) * 0x1p-20;
      };
      const double depth = depth_along(from, {part(0), part(1), part(2)}, palms);
      // The noise of a depth grows with its square; one pixel of a hundred has no reading.
      const double off = noise.next() + noise.next() + noise.next() - 1.5;
      const double read = depth + off * depth * depth * 1e-5;
      const bool none = noise.next() < 0.01 || read < least_depth || read > most_depth;
      *depths++ = none ? 0 : static_cast<std::uint16_t>(std::lround(read));
    }
}

}  // namespace

recording draw(const frame_shape& s, std::uint32_t frames, std::uint32_t rate, std::uint64_t seed) {
  if (frames > most_recorded_bytes / s.bytes())
    throw tool::usage_error(
        fmt::format("{} frames of 2 x {}x{} pixels are more than 4 GiB; ask for {} or fewer",
                    frames, s.width, s.height, most_recorded_bytes / s.bytes()));
  recording r{s, frames, rate, {}};
  r.depths.resize(frames * cameras * s.pixels());
  const double turn = chance(seed).next();
  tool::progress shown("drawing frames", frames);
  for (std::uint32_t i = 0; i < frames; ++i) {
    const vec palms[2] = {palm_at(0, i, turn), palm_at(1, i, turn)};
    for (unsigned c = 0; c < cameras; ++c)
      draw_frame(s, camera_of(s, c), palms, chance(seed * 0x2545'f491'4f6c'dd1d + i * 2 + c),
                 r.depths.data() + (i * cameras + c) * s.pixels());
    shown.next();
  }
  return r;
}

}  // namespace grosr::gesture
