#include "modules.hpp"

#include "grosr/simt/timeline.hpp"
#include "pinned_frames.hpp"
#include "ways.hpp"

namespace grosr::gesture {

using simt::space;

transform_module::transform_module(const device& d, const frame_shape& of)
    : shape_(of),
      cameras_{camera_of(of, 0), camera_of(of, 1)},
      stream_(d),
      depths_(d, space::device, cameras * of.pixels()),
      cloud_(d, space::device, cameras * of.pixels()),
      result_(d, space::pinned, cameras * of.pixels()) {}

void transform_module::operator()(const std::uint16_t* depths) {
  simt::copy_bytes(stream_, depths_.data(), depths, depths_.bytes());
  for (unsigned c = 0; c < cameras; ++c)
    launch_transform(stream_, cameras_[c], shape_, depths_.data() + c * shape_.pixels(),
                     cloud_.data() + c * shape_.pixels());
  simt::copy_bytes(stream_, result_.data(), cloud_.data(), cloud_.bytes());
  stream_.wait();
}

filter_module::filter_module(const device& d, const frame_shape& of, unsigned radius)
    : shape_(of),
      weights_(weights_of(radius)),
      stream_(d),
      cloud_(d, space::device, cameras * of.pixels()),
      filtered_(d, space::device, cameras * of.pixels()),
      result_(d, space::pinned, cameras * of.pixels()) {}

void filter_module::operator()(const point* cloud) {
  simt::copy_bytes(stream_, cloud_.data(), cloud, cloud_.bytes());
  launch_filter(stream_, weights_, shape_, cloud_.data(), cloud_.data() + shape_.pixels(),
                filtered_.data());
  simt::copy_bytes(stream_, result_.data(), filtered_.data(), filtered_.bytes());
  stream_.wait();
}

summary_module::summary_module(const device& d, const frame_shape& of)
    : shape_(of),
      stream_(d),
      filtered_(d, space::device, cameras * of.pixels()),
      summary_(d, space::device, cells),
      result_(d, space::pinned, cells) {}

void summary_module::operator()(const point* filtered) {
  simt::copy_bytes(stream_, filtered_.data(), filtered, filtered_.bytes());
  launch_clear(stream_, summary_.data());
  launch_summary(stream_, shape_, filtered_.data(), summary_.data());
  simt::copy_bytes(stream_, result_.data(), summary_.data(), summary_.bytes());
  stream_.wait();
}

namespace {

class modular final : public way {
 public:
  explicit modular(const setup& s)
      : frames_(s.where, s.frames),
        transform_(s.where, s.shape()),
        filter_(s.where, s.shape(), s.radius),
        summary_(s.where, s.shape()) {}

  run_usage run(const course& c, delivery& to) override {
    return run_here(c, [&](feed& from) {
      while (const auto t = from.next()) {
        transform_(frames_.of(t->number));
        filter_(transform_.result());
        summary_(filter_.result());
        to.summary(*t, summary_.result());
      }
    });
  }

 private:
  const pinned_frames frames_;
  transform_module transform_;
  filter_module filter_;
  summary_module summary_;
};

}  // namespace

std::unique_ptr<way> make_modular(const setup& s) { return std::make_unique<modular>(s); }

}  // namespace grosr::gesture
