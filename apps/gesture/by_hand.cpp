// Without a library: what an expert writes for these stages, and cannot use for others.
#include <algorithm>
#include <deque>

#include "grosr/simt/stream_graph.hpp"
#include "grosr/simt/timeline.hpp"
#include "pinned_frames.hpp"
#include "ways.hpp"

namespace grosr::gesture {
namespace {

using simt::space;

/// All that one frame needs on the device, and its summary in host memory.
struct buffers {
  const setup& s;
  const camera left, right;
  const frame_weights weights;
  simt::buffer<std::uint16_t> depths;
  simt::buffer<point> cloud, filtered;
  simt::buffer<cell> summary, here;

  explicit buffers(const setup& of)
      : s(of),
        left(camera_of(of.shape(), 0)),
        right(camera_of(of.shape(), 1)),
        weights(weights_of(of.radius)),
        depths(of.where, space::device, cameras * of.shape().pixels()),
        cloud(of.where, space::device, cameras * of.shape().pixels()),
        filtered(of.where, space::device, cameras * of.shape().pixels()),
        summary(of.where, space::device, cells),
        here(of.where, space::pinned, cells) {}

  std::size_t pixels() const { return s.shape().pixels(); }
  void copy_in(simt::stream& to, const std::uint16_t* frame, unsigned camera) const {
    simt::copy_bytes(to, depths.data() + camera * pixels(), frame + camera * pixels(),
                     pixels() * sizeof(std::uint16_t));
  }
  void put_transform(simt::stream& to, unsigned camera) const {
    launch_transform(to, camera == 0 ? left : right, s.shape(), depths.data() + camera * pixels(),
                     cloud.data() + camera * pixels());
  }
  void put_filter(simt::stream& to) const {
    launch_filter(to, weights, s.shape(), cloud.data(), cloud.data() + pixels(), filtered.data());
  }
  void put_summary(simt::stream& to) const {
    launch_summary(to, s.shape(), filtered.data(), summary.data());
  }
  void copy_out(simt::stream& to) const {
    simt::copy_bytes(to, here.data(), summary.data(), summary.bytes());
  }
  /// All of it, in order.
  void put_frame(simt::stream& to, const std::uint16_t* frame) const {
    for (unsigned c = 0; c < cameras; ++c) copy_in(to, frame, c);
    for (unsigned c = 0; c < cameras; ++c) put_transform(to, c);
    put_filter(to);
    launch_clear(to, summary.data());
    put_summary(to);
    copy_out(to);
  }
};

class by_hand final : public way {
 public:
  explicit by_hand(const setup& s)
      : s_(s), frames_(s.where, s.frames), stream_(s.where), on_device_(s_) {}

  run_usage run(const course& c, delivery& to) override {
    return run_here(c, [&](feed& from) {
      while (const auto t = from.next()) {
        on_device_.put_frame(stream_, frames_.of(t->number));
        stream_.wait();
        to.summary(*t, on_device_.here.data());
      }
    });
  }

 private:
  const setup s_;
  const pinned_frames frames_;
  simt::stream stream_;
  const buffers on_device_;
};

/// A stream and a set of buffers for each frame in flight, so that copies and kernels of several
/// overlap. A frame is one CUDA graph, copies included, where there are such: in it cameras go side
/// by side.
class best_by_hand final : public way {
 public:
  explicit best_by_hand(const setup& s) : s_(s), frames_(s.where, s.frames) {
    for (unsigned i = 0; i < s.in_flight; ++i) all_.push_back(std::make_unique<set>(s_));
    graphs_.resize(frames_.count());
    for (std::uint32_t i = 0; i < frames_.count(); ++i)
      graphs_[i] = make_graph(all_[i % all_.size()]->on_device, frames_.of(i));
  }

  run_usage run(const course& c, delivery& to) override {
    return run_here(c, [&](feed& from) {
      std::deque<std::pair<taken, set*>> in_flight;
      const auto deliver = [&] {
        const auto [t, of] = in_flight.front();
        of->came.wait();
        to.summary(t, of->on_device.here.data());
        of->busy = false;
        in_flight.pop_front();
      };
      // What has come is put into a stream; while nothing has, what is there is waited for.
      for (;;) {
        if (!in_flight.empty() && (in_flight.size() == all_.size() || !from.ready())) {
          deliver();
          continue;
        }
        const auto t = from.next();
        if (!t) break;
        const auto i = static_cast<std::uint32_t>(t->number % frames_.count());
        set& of = *all_[i % all_.size()];
        while (of.busy) deliver();
        if (graphs_[i])
          graphs_[i]->launch(of.stream.queue());
        else
          of.on_device.put_frame(of.stream.queue(), frames_.of(i));
        of.came = of.stream.mark();
        of.busy = true;
        in_flight.emplace_back(*t, &of);
      }
      while (!in_flight.empty()) deliver();
    });
  }

  std::vector<std::string> notes() const override {
    if (!s_.where.is_cuda() || std::count(graphs_.begin(), graphs_.end(), nullptr) == 0) return {};
    return {"CUDA graphs could not be made; frames were put into streams piece by piece"};
  }

 private:
  struct set {
    buffers on_device;
    simt::timeline stream;
    simt::stream_point came;
    bool busy = false;
    explicit set(const setup& s) : on_device(s), stream(s.where) {}
  };

  std::unique_ptr<simt::stream_graph> make_graph(const buffers& b,
                                                 const std::uint16_t* frame) const {
    auto g = simt::stream_graph::make(s_.where);
    if (!g) return g;
    unsigned next = 0;
    bool whole = true;
    const auto add = [&](std::vector<unsigned> after, const simt::stream_graph::part& p) {
      whole = whole && g->add(after, p);
      return next++;
    };
    std::vector<unsigned> clouds;
    const unsigned cleared = add({}, [&](simt::stream& s) { launch_clear(s, b.summary.data()); });
    for (unsigned c = 0; c < cameras; ++c) {
      const unsigned in = add({}, [&](simt::stream& s) { b.copy_in(s, frame, c); });
      clouds.push_back(add({in}, [&](simt::stream& s) { b.put_transform(s, c); }));
    }
    const unsigned filtered = add(clouds, [&](simt::stream& s) { b.put_filter(s); });
    const unsigned counted = add({filtered, cleared}, [&](simt::stream& s) { b.put_summary(s); });
    add({counted}, [&](simt::stream& s) { b.copy_out(s); });
    if (!whole || !g->finish()) g.reset();
    return g;
  }

  const setup s_;
  const pinned_frames frames_;
  std::vector<std::unique_ptr<set>> all_;
  std::vector<std::unique_ptr<simt::stream_graph>> graphs_;  // by frame of the recording
};

}  // namespace

std::unique_ptr<way> make_by_hand(const setup& s) { return std::make_unique<by_hand>(s); }
std::unique_ptr<way> make_best_by_hand(const setup& s) { return std::make_unique<best_by_hand>(s); }

}  // namespace grosr::gesture
