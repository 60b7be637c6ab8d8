#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "cli/progress.hpp"
#include "grosr/flow/graph.hpp"
#include "ways.hpp"

namespace grosr::gesture {
namespace {

struct transform_in_stream {
  camera of;
  frame_shape shape;
  void operator()(simt::stream& s, flow::in<std::uint16_t> depths, flow::out<point> cloud) const {
    launch_transform(s, of, shape, depths.data, cloud.data);
  }
};

struct filter_in_stream {
  frame_weights weights;
  frame_shape shape;
  void operator()(simt::stream& s, flow::in<point> left, flow::in<point> right,
                  flow::out<point> filtered) const {
    launch_filter(s, weights, shape, left.data, right.data, filtered.data);
  }
};

struct count_in_stream {
  frame_shape shape;
  void operator()(simt::stream& s, flow::in<point> filtered, flow::out<cell> summary) const {
    launch_clear(s, summary.data);
    launch_summary(s, shape, filtered.data, summary.data);
  }
};

/// Frames that have been pushed, and not been delivered.
class in_flight {
 public:
  void pushed(const taken& t) {
    std::lock_guard lock(mutex_);
    all_.push_back(t);
  }
  taken oldest() {
    std::lock_guard lock(mutex_);
    return all_.front();
  }
  void delivered() {
    {
      std::lock_guard lock(mutex_);
      all_.pop_front();
    }
    fewer_.notify_all();
  }
  std::size_t count() {
    std::lock_guard lock(mutex_);
    return all_.size();
  }
  /// False: there still are as many after `limit`.
  bool wait_for_fewer(std::size_t than, std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return fewer_.wait_for(lock, limit, [&] { return all_.size() < than; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable fewer_;
  std::deque<taken> all_;
};

class by_flow final : public way {
 public:
  explicit by_flow(const setup& s)
      : s_(s),
        executor_({.devices = {s.where}, .threads = s.threads}),
        graph_(executor_, {.name = "gesture",
                           .runs_in_flight = std::min(s.in_flight, flow::most_runs_in_flight)}) {
    const frame_shape& shape = s.shape();
    const auto depths = flow::block_template::of<std::uint16_t>(shape.width, shape.height);
    const auto cloud = flow::block_template::of<point>(shape.width, shape.height);
    const auto clouds = flow::block_template::of<point>(shape.width, shape.height, cameras);
    const auto summary = flow::block_template::of<cell>(cell_columns, cell_rows);
    using flow::stream_work;
    const char* const sides[cameras] = {"left", "right"};
    const flow::node filter = graph_.on_stream(
        "filter", filter_in_stream{weights_of(s.radius), shape},
        {{"left", cloud}, {"right", cloud}, {"filtered", clouds}}, stream_work::same_always);
    for (unsigned c = 0; c < cameras; ++c) {
      const flow::node n = graph_.on_stream(
          std::string("transform ") + sides[c], transform_in_stream{camera_of(shape, c), shape},
          {{"depths", depths}, {"cloud", cloud}}, stream_work::same_always);
      graph_.connect(n["cloud"], filter[sides[c]]);
      from_.push_back(graph_.source<std::uint16_t>(n["depths"], {.capacity = s.in_flight}));
    }
    const flow::node count =
        graph_.on_stream("count", count_in_stream{shape},
                         {{"filtered", clouds}, {"summary", summary}}, stream_work::same_always);
    const flow::node detect = graph_.host("detect", [this](flow::in<cell> of) { deliver(of.data); },
                                          {{"summary", summary}});
    graph_.connect(filter["filtered"], count["filtered"]);
    graph_.connect(count["summary"], detect["summary"], {.capacity = s.in_flight});
    graph_.compile();
    // The buffers of the cameras' driver: pinned, for blocks.
    for (std::uint32_t i = 0; i < s.frames.frames; ++i)
      for (unsigned c = 0; c < cameras; ++c) {
        frames_.push_back(from_[c].make());
        const auto to = frames_.back().write<std::uint16_t>();
        const std::uint16_t* const of = s.frames.frame(i) + c * shape.pixels();
        std::copy(of, of + shape.pixels(), to.begin());
      }
  }

  run_usage run(const course& c, delivery& to) override {
    to_ = &to;
    return run_here(c, [&](feed& from) {
      while (const auto t = from.next()) {
        push(*t);
        // Without threads of the executor, this one brings what it has pushed to its end.
        if (s_.threads == 0 && !from.ready()) graph_.wait();
      }
      wait_for_fewer(1);
      graph_.wait();
    });
  }

  std::vector<std::string> notes() const override { return graph_.events(); }

 private:
  void push(const taken& t) {
    wait_for_fewer(s_.in_flight);
    // The cameras get back frames that have been delivered, and write them again.
    for (const std::size_t left = waiting_.count(); shown_.size() > left; shown_.pop_front())
      for (unsigned c = 0; c < cameras; ++c) frame(shown_.front(), c).update<std::uint16_t>();
    waiting_.pushed(t);
    shown_.push_back(t.number);
    std::vector<flow::block_for> both;
    for (unsigned c = 0; c < cameras; ++c) both.push_back({from_[c], frame(t.number, c)});
    while (!flow::push_all_for(both, std::chrono::milliseconds(100))) tool::progress::pulse();
    if (s_.threads == 0)
      while (executor_.step()) {  // puts it on the device at once
      }
  }
  flow::datablock& frame(std::uint64_t number, unsigned camera) {
    return frames_[static_cast<std::size_t>(number % s_.frames.frames) * cameras + camera];
  }
  void deliver(const cell* summary) {
    to_->summary(waiting_.oldest(), summary);
    waiting_.delivered();
  }
  /// Throws what has ended the graph, and interrupted.
  void wait_for_fewer(std::size_t than) {
    if (s_.threads == 0) {
      while (waiting_.count() >= than) {
        if (executor_.step()) continue;
        tool::progress::pulse();
        std::this_thread::yield();
      }
      return;
    }
    while (!waiting_.wait_for_fewer(than, std::chrono::milliseconds(100))) {
      tool::progress::pulse();
      if (!graph_.events().empty()) graph_.wait();
    }
  }

  const setup s_;
  flow::executor executor_;
  in_flight waiting_;
  delivery* to_ = nullptr;
  std::vector<flow::source<std::uint16_t>> from_;
  std::vector<flow::datablock> frames_;  // of each frame, of each camera
  std::deque<std::uint64_t> shown_;      // frames that the cameras have not got back
  flow::graph graph_;                    // its end waits for what uses the others
};

}  // namespace

std::unique_ptr<way> make_flow(const setup& s) { return std::make_unique<by_flow>(s); }

}  // namespace grosr::gesture
