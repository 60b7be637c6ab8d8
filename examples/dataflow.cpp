// Frames go through functions on a device and on the host, and are copied only where they must be.
//
//   $ ./dataflow
#include <cstdint>
#include <cstdio>
#include <vector>

#include <grosr/flow/graph.hpp>

namespace flow = grosr::flow;

constexpr std::uint32_t width = 64, height = 48, frames = 30;

struct smooth {  // one call for each point of the output
  GROSR_DEVICE void operator()(flow::point p, flow::in<float> frame,
                               flow::out<float> result) const {
    float sum = 0;
    for (std::uint32_t y = p.y == 0 ? 0 : p.y - 1; y <= p.y + 1 && y < frame.extent[1]; ++y)
      for (std::uint32_t x = p.x == 0 ? 0 : p.x - 1; x <= p.x + 1 && x < frame.extent[0]; ++x)
        sum += frame(x, y);
    result(p.x, p.y) = sum / 9;
  }
};

struct find_bright {
  float least;
  GROSR_DEVICE void operator()(flow::point p, flow::in<float> frame,
                               flow::out<std::uint8_t> bright) const {
    bright(p.x, p.y) = frame(p.x, p.y) >= least ? 1 : 0;
  }
};

// A bright square of 8 x 8 that wanders.
std::vector<float> draw(std::uint32_t i) {
  std::vector<float> frame(width * height);
  for (std::uint32_t y = 0; y < 8; ++y)
    for (std::uint32_t x = 0; x < 8; ++x) frame[(y + 10) * width + x + i + 5] = 1;
  return frame;
}

int main() {
  flow::executor where;  // the best device, and two threads
  flow::graph graph(where, {.name = "bright"});
  const auto image = flow::block_template::of<float>(width, height);
  const auto mask = flow::block_template::of<std::uint8_t>(width, height);
  const auto one = flow::block_template::of<std::uint32_t>(1);
  flow::node smoother = graph.kernel("smooth", smooth{}, {{"frame", image}, {"result", image}});
  flow::node finder = graph.kernel("find", find_bright{1}, {{"frame", image}, {"bright", mask}});
  flow::node counter =
      graph.host("count",
                 [](flow::in<std::uint8_t> bright, flow::out<std::uint32_t> count) {
                   count[0] = 0;
                   for (const std::uint8_t b : bright) count[0] += b;
                 },
                 {{"bright", mask}, {"count", one}});
  graph.connect(smoother["result"], finder["frame"]);
  graph.connect(finder["bright"], counter["bright"]);
  auto camera = graph.source<float>(smoother["frame"], {.capacity = 4});
  auto counts = graph.sink<std::uint32_t>(counter["count"], {.capacity = 4});
  std::printf("%s", graph.compile().text().c_str());

  std::uint32_t right = 0;
  for (std::uint32_t i = 0; i < frames; ++i) {
    camera.push(draw(i));
    if (i >= 3) right += counts.pull_elements()[0] == 36;  // 6 x 6 have bright neighbours alone
  }
  for (int i = 0; i < 3; ++i) right += counts.pull_elements()[0] == 36;
  std::printf("%u of %u frames are right\n", right, frames);

  for (const flow::block_channel_stats& c : graph.channels())
    std::printf("%s -> %s: %llu blocks, %llu copies\n", c.from.c_str(), c.to.c_str(),
                static_cast<unsigned long long>(c.blocks),
                static_cast<unsigned long long>(c.copies.copies));
  for (const flow::node_stats& n : graph.nodes())
    if (n.stretch.empty())
      std::printf("%s: %.0f us from push to end, at most %.0f\n", n.name.c_str(), n.latency.mean_us,
                  n.latency.max_us);
  return right == frames ? 0 : 1;
}
