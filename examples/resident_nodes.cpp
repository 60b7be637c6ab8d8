// Nodes that stay on the device: a small control loop, step by step, without a launch.
#include <cmath>
#include <cstdio>
#include <vector>

#include "grosr/flow/graph.hpp"

namespace flow = grosr::flow;

namespace {

constexpr std::size_t sensors = 256;

struct calibrate {
  float gain;
  GROSR_DEVICE void operator()(flow::point p, flow::in<float> raw, flow::out<float> value) const {
    value[p.index] = gain * raw[p.index];
  }
};

struct control {
  float wanted;
  GROSR_DEVICE void operator()(flow::point p, flow::in<float> now, flow::out<float> force) const {
    force[p.index] = wanted - now[p.index];
  }
};

}  // namespace

int main() {
  const auto values = flow::block_template::of<float>(sensors);
  flow::executor where({.threads = 0});  // push and pull do what there is to do on the host
  flow::graph graph(where, {.name = "control"});
  flow::node calibrated =
      graph.resident("calibrate", calibrate{2}, {{"raw", values}, {"value", values}});
  flow::node controlled =
      graph.resident("control", control{10}, {{"now", values}, {"force", values}});
  graph.connect(calibrated["value"], controlled["now"]);
  auto readings = graph.source<float>(calibrated["raw"]);
  auto forces = graph.sink<float>(controlled["force"]);
  graph.compile();

  float state = 0;  // what the sensors see, and the forces move
  for (int step = 0; step < 20; ++step) {
    readings.push(std::vector<float>(sensors, state));
    state += 0.25f * forces.pull_elements()[0];
  }
  std::printf("after 20 steps the sensors read %.3f\n", state);
  return std::fabs(state - 5) < 0.01f ? 0 : 1;
}
