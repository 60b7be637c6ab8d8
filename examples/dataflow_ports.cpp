// A graph counts bright points of frames; another process draws the frames and gets the counts.
//
//   $ ./dataflow_ports
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>

#include <grosr/flow/graph.hpp>
#include <grosr/flow/remote_port.hpp>
#include <grosr/flow/shared_port.hpp>

namespace flow = grosr::flow;

constexpr std::uint32_t width = 64, height = 48, frames = 30;

// A bright line that wanders.
void draw(std::uint32_t i, std::span<float> frame) {
  std::fill(frame.begin(), frame.end(), 0.0f);
  for (std::uint32_t y = 0; y < height; ++y) frame[y * width + i] = 1;
}

int draw_frames(const std::string& name) {
  const flow::remote_source<float> to(name + ".frames");
  const flow::remote_sink<std::uint32_t> counts(name + ".counts");
  std::uint32_t right = 0;
  for (std::uint32_t i = 0; i < frames; ++i) {
    auto frame = to.write();  // waits for a slot of the shared memory
    draw(i, frame);
    frame.push();
    const auto count = counts.pull();  // has a slot until its end
    right += count[0] == height;
  }
  std::printf("%u of %u frames are right\n", right, frames);
  return right == frames ? 0 : 1;
}

int count_bright(const std::string& name, pid_t other) {
  flow::executor where;
  flow::graph graph(where, {.name = "bright"});
  flow::node counter = graph.host("count",
                                  [](flow::in<float> frame, flow::out<std::uint32_t> count) {
                                    count[0] = 0;
                                    for (const float x : frame) count[0] += x >= 1;
                                  },
                                  {{"frame", flow::block_template::of<float>(width, height)},
                                   {"count", flow::block_template::of<std::uint32_t>(1)}});
  auto from = graph.source<float>(counter["frame"]);
  auto counts = graph.sink<std::uint32_t>(counter["count"]);
  graph.compile();
  flow::shared_port frames_in(from, name + ".frames", {.slots = 8});
  flow::shared_port counts_out(counts, name + ".counts");
  int status = 1;
  waitpid(other, &status, 0);
  std::printf("%llu frames came\n", static_cast<unsigned long long>(frames_in.stats().blocks));
  return status == 0 ? 0 : 1;
}

int main() {
  const std::string name = "bright-" + std::to_string(getpid());
  const pid_t other = fork();  // before this process has threads
  if (other < 0) return std::perror("fork"), 1;
  return other == 0 ? draw_frames(name) : count_bright(name, other);
}
