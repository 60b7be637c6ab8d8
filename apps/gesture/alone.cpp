#include "alone.hpp"

#include <fmt/format.h>

#include <functional>

#include "cli/progress.hpp"
#include "grosr/simt/timeline.hpp"
#include "measure/samples.hpp"
#include "pinned_frames.hpp"
#include "plainly.hpp"

namespace grosr::gesture {
namespace {

using simt::space;

/// Microseconds of what `put` puts into a stream: of several in a row, so that the calls that put
/// them are hidden.
double time_of(simt::timeline& t, bool gpu, const std::function<void(simt::stream&)>& put) {
  const unsigned rounds = gpu ? 21 : 3, in_row = gpu ? 20 : 1;
  std::vector<double> us;
  put(t.queue());
  for (unsigned r = 0; r < rounds; ++r) {
    tool::progress::pulse();
    const simt::stream_time began = t.time();
    for (unsigned i = 0; i < in_row; ++i) put(t.queue());
    const simt::stream_time ended = t.time();
    t.mark().wait();
    if (!began.ns() || !ended.ns()) return 0;
    us.push_back(static_cast<double>(*ended.ns() - *began.ns()) * 1e-3 / in_row);
  }
  return tool::samples(std::move(us)).median();
}

std::string compare(const std::vector<point>& got, const std::vector<point>& expected) {
  for (std::size_t i = 0; i < got.size(); ++i)
    if (got[i] != expected[i])
      return fmt::format("point {} is {}, {}, {} at depth {}, not {}, {}, {} at depth {}", i,
                         got[i].x, got[i].y, got[i].z, got[i].depth, expected[i].x, expected[i].y,
                         expected[i].z, expected[i].depth);
  return "";
}

}  // namespace

frame_alone measure_alone(const setup& s) {
  const frame_shape& shape = s.shape();
  const bool gpu = s.where.is_cuda();
  const std::size_t pixels = shape.pixels(), all = cameras * pixels;
  const pinned_frames frames(s.where, s.frames);
  const frame_weights weights = weights_of(s.radius);
  simt::timeline t(s.where);
  simt::buffer<std::uint16_t> depths(s.where, space::device, all);
  simt::buffer<point> cloud(s.where, space::device, all), filtered(s.where, space::device, all);
  simt::buffer<cell> summary(s.where, space::device, cells), here(s.where, space::pinned, cells);
  const std::function<void(simt::stream&)> copies[] = {
      [&](simt::stream& to) {
        for (unsigned c = 0; c < cameras; ++c)
          simt::copy_bytes(to, depths.data() + c * pixels, frames.of(0, c),
                           pixels * sizeof(std::uint16_t));
      },
      [&](simt::stream& to) {
        simt::copy_bytes(to, here.data(), summary.data(), summary.bytes());
      }};
  const std::function<void(simt::stream&)> kernels[] = {
      [&](simt::stream& to) {
        for (unsigned c = 0; c < cameras; ++c)
          launch_transform(to, camera_of(shape, c), shape, depths.data() + c * pixels,
                           cloud.data() + c * pixels);
      },
      [&](simt::stream& to) {
        launch_filter(to, weights, shape, cloud.data(), cloud.data() + pixels, filtered.data());
      },
      [&](simt::stream& to) {
        launch_clear(to, summary.data());
        launch_summary(to, shape, filtered.data(), summary.data());
      }};
  frame_alone a;
  a.copies_us = time_of(t, gpu, copies[0]);
  for (const auto& k : kernels) a.kernels_us += time_of(t, gpu, k);
  a.copies_us += time_of(t, gpu, copies[1]);

  std::vector<point> got(all);
  filtered.copy_to(got);
  const std::vector<point> expected = plainly::filtered_cloud(shape, s.radius, s.frames.frame(0));
  a.wrong = compare(got, expected);
  const std::vector<cell> counted = plainly::summary(expected);
  for (std::size_t i = 0; a.wrong.empty() && i < cells; ++i)
    if (here[i] != counted[i])
      a.wrong = fmt::format("cell {} has {} points, not {}, or these lie elsewhere", i,
                            here[i].count, counted[i].count);
  return a;
}

}  // namespace grosr::gesture
