// `grosr bench policies`: what graphs of different priorities get of one device, and what a second
// device is worth, by the policy of their executor. PTask (SOSP 2011) shows both, in figures 13
// and 12.
#include <array>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <thread>

#include "cases/benches.hpp"
#include "cases/policies_work.hpp"
#include "cli/interrupt.hpp"

namespace grosr::tool {
namespace {

using four = std::array<double, 4>;

/// The line nearest to `y` over `x`.
struct line {
  double slope, r2;
};
line nearest(const four& x, const four& y) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sx += x[i], sy += y[i];
    sxx += x[i] * x[i], sxy += x[i] * y[i], syy += y[i] * y[i];
  }
  const auto n = static_cast<double>(x.size());
  const double xy = n * sxy - sx * sy, xx = n * sxx - sx * sx, yy = n * syy - sy * sy;
  return {xy / xx, yy <= 0 ? 0 : xy * xy / (xx * yy)};
}

/// Four graphs that always have blocks to work on, in one executor.
class four_graphs {
 public:
  four_graphs(const device& d, const std::string& policy, const four& priorities,
              const rectangle_shape& shape)
      : executor_({.devices = {d}, .policy = policy}) {
    for (const double p : priorities) {
      graphs_.emplace_back(executor_, "priority " + std::to_string(static_cast<int>(p)),
                           static_cast<int>(p), shape, 0);
      inputs_.push_back(graphs_.back().input(static_cast<std::uint32_t>(p) + 10));
    }
  }

  void feed(double seconds) {
    const auto began = clock::now();
    while (microseconds_since(began) < seconds * 1e6) {
      for (std::size_t g = 0; g < graphs_.size(); ++g)
        for (unsigned c = 0; c < graphs_[g].breadth(); ++c)
          while (graphs_[g].in(c).try_push(inputs_[g])) continue;
      interrupt::check();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }

  four runs() const {
    four all{};
    for (std::size_t g = 0; g < graphs_.size(); ++g) all[g] = graphs_[g].runs();
    return all;
  }

  /// After all that was pushed has come out.
  std::string wrong() {
    for (std::size_t g = 0; g < graphs_.size(); ++g) {
      graphs_[g].wait();
      for (unsigned c = 0; c < graphs_[g].breadth(); ++c)
        if (std::string w = graphs_[g].wrong(inputs_[g], graphs_[g].out(c).pull()); !w.empty())
          return w;
    }
    return "";
  }

 private:
  flow::executor executor_;
  std::deque<rectangle> graphs_;
  std::vector<flow::datablock> inputs_;
};

void shares(session& s, const std::string& policy, const four& priorities, std::uint32_t rows) {
  const rectangle_shape shape{6, 6, rows};
  four_graphs all(s.where, policy, priorities, shape);
  all.feed(s.sized(0.3, 0.1));
  const four before = all.runs();
  const auto began = clock::now();
  all.feed(s.sized(2.0, 0.4));
  const four after = all.runs();
  const double seconds = microseconds_since(began) / 1e6;

  four rates{}, percent{};
  double sum = 0;
  for (std::size_t g = 0; g < rates.size(); ++g) {
    rates[g] = (after[g] - before[g]) / seconds;
    sum += rates[g];
  }
  std::string named;
  for (const double p : priorities)
    named += (named.empty() ? "" : ", ") + std::to_string(static_cast<int>(p));
  row r(policy + ": four graphs of 36 nodes, priorities " + named);
  for (std::size_t g = 0; g < rates.size(); ++g)
    r.set("priority_" + std::to_string(static_cast<int>(priorities[g])) + "_graphs_per_s",
          rates[g]);
  for (std::size_t g = 0; g < rates.size(); ++g) {
    percent[g] = sum == 0 ? 0 : 100 * rates[g] / sum;
    r.set("priority_" + std::to_string(static_cast<int>(priorities[g])) + "_percent", percent[g]);
  }
  const line l = nearest(priorities, percent);
  const std::string wrong = all.wrong();
  r.set("slope_percent", l.slope)
      .set("r2_percent", 100 * l.r2)
      .check(wrong.empty(), wrong)
      .note("the slope is how much more of the device a graph gets for a step of priority");
  if (policy == "priority") r.at_least("r2_percent", 98);
  s.out.add(r);
}

/// A rectangle, and blocks that go through it.
class filled_rectangle {
 public:
  filled_rectangle(const std::vector<device>& on, const std::string& policy,
                   const rectangle_shape& shape, unsigned blocks)
      : executor_({.devices = on, .policy = policy}),
        graph_(executor_, "rectangle", 0, shape, blocks),
        inputs_(shape.breadth),
        results_(shape.breadth),
        blocks_(blocks) {}

  /// New blocks go through all columns. How long that took, in microseconds.
  double once() {
    for (unsigned c = 0; c < inputs_.size(); ++c) {
      inputs_[c].clear();
      results_[c].clear();
      for (unsigned i = 0; i < blocks_; ++i) inputs_[c].push_back(graph_.input(++seed_));
    }
    return timed([&] {
      for (unsigned i = 0; i < blocks_; ++i)
        for (unsigned c = 0; c < inputs_.size(); ++c) graph_.in(c).push(inputs_[c][i]);
      for (unsigned i = 0; i < blocks_; ++i)
        for (unsigned c = 0; c < inputs_.size(); ++c) results_[c].push_back(graph_.out(c).pull());
      graph_.wait();
    });
  }

  /// Of the blocks that went through last.
  std::string wrong() const {
    for (unsigned c = 0; c < inputs_.size(); ++c)
      for (unsigned i = 0; i < blocks_; ++i)
        if (std::string w = graph_.wrong(inputs_[c][i], results_[c][i]); !w.empty()) return w;
    return "";
  }

  rectangle::moves moved() const { return graph_.moved(); }

 private:
  flow::executor executor_;
  rectangle graph_;
  std::vector<std::vector<flow::datablock>> inputs_, results_;
  const unsigned blocks_;
  std::uint32_t seed_ = 1;
};

/// A device and another one of its kind; where there is none, two of the host.
std::vector<device> two_devices(const device& first) {
  for (const device& d : device::list())
    if (d.kind() == first.kind() && d != first) return {first, d};
  setenv("GROSR_HOST_DEVICES", "2", 1);
  std::vector<device> both{device("host:0"), device("host:1")};
  unsetenv("GROSR_HOST_DEVICES");
  return both;
}

void second_device(session& s, const std::vector<device>& both, const std::string& policy,
                   const rectangle_shape& shape) {
  const bool gpus = both[0].is_cuda();
  const unsigned blocks = gpus && !s.quick ? 8 : 4;
  filled_rectangle on_one({both[0]}, policy, shape, blocks);
  filled_rectangle on_both(both, policy, shape, blocks);
  std::vector<double> one_us;
  // Both sides take turns.
  const samples us = s.repeat("policies: " + policy, {1, gpus ? 7u : 3u, 3.0}, [&] {
    one_us.push_back(on_one.once());
    return on_both.once();
  });
  const samples one(std::move(one_us));
  const rectangle::moves moved = on_both.moved();
  row r(policy + ": depth " + std::to_string(shape.depth) + ", breadth " +
        std::to_string(shape.breadth) + ", on " + both[0].name() + " and " + both[1].name());
  r.set("speedup_x", one.median() / us.median())
      .set("moves_percent", 100 * moved.moved / moved.inputs)
      .set("moved_bytes", moved.bytes)
      .time(us)
      .check(on_one.wrong().empty(), on_one.wrong())
      .check(on_both.wrong().empty(), on_both.wrong())
      .baseline("one device", "median_us", one.median());
  if (policy == "data_aware") {
    r.at_most("moves_percent", 0.6);
    if (gpus) r.at_least("speedup_x", 1.8);
  }
  s.out.add(r);
}

}  // namespace

void bench_policies(session& s) {
  const auto rows = s.number(0);
  const auto rows_of = [&](std::uint32_t usual) {
    return rows ? static_cast<std::uint32_t>(*rows) : usual;
  };
  for (const std::string& policy : flow::executor::policies())
    shares(s, policy, {1, 2, 3, 4}, rows_of(s.sized(256u, 12u)));
  shares(s, "priority", {1, 2, 4, 8}, rows_of(s.sized(256u, 12u)));

  const std::vector<device> both = two_devices(s.where);
  const bool large = both[0].is_cuda() && !s.quick;
  for (const unsigned breadth : large ? std::vector{8u, 16u, 32u} : std::vector{4u, 10u, 32u})
    for (const std::string& policy : flow::executor::policies())
      second_device(s, both, policy, {6, breadth, rows_of(large ? 512 : 12)});
}

}  // namespace grosr::tool
