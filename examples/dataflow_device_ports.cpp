// A graph counts bright points of frames; another process draws the frames on the same device, and
// no frame is copied to the host.
//
//   $ ./dataflow_device_ports [DEVICE]
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include <grosr/flow/graph.hpp>
#include <grosr/flow/remote_port_on_device.hpp>
#include <grosr/flow/shared_port.hpp>
#include <grosr/simt/lanes.hpp>
#include <grosr/simt/launch.hpp>

namespace flow = grosr::flow;
namespace simt = grosr::simt;

constexpr std::uint32_t width = 64, height = 48, frames = 30;

// A bright line that wanders.
struct draw {
  float* frame;
  std::uint32_t i;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t p = simt::thread_id(); p < width * height; p += 64)
      frame[p] = p % width == i ? 1.0f : 0.0f;
  }
};

// A point of the counts is one for a row of the frame.
struct count_row {
  GROSR_DEVICE void operator()(flow::point row, flow::in<float> frame,
                               flow::out<std::uint32_t> bright) const {
    std::uint32_t n = 0;
    for (std::uint32_t x = 0; x < width; ++x) n += frame(x, row.index) >= 1;
    bright[row.index] = n;
  }
};

int draw_frames(const std::string& name) {
  const flow::remote_source_on_device<float> to(name + ".frames");
  const flow::remote_sink<std::uint32_t> counts(name + ".counts");  // in host memory
  simt::stream stream(to.where());
  std::uint32_t right = 0;
  for (std::uint32_t i = 0; i < frames; ++i) {
    auto frame = to.write();  // a slot in memory of the device
    simt::launch(stream, {1, 64}, draw{frame.data(), i});
    frame.push(stream);  // when the stream has drawn it
    std::uint32_t sum = 0;
    for (const std::uint32_t bright : counts.pull()) sum += bright;
    right += sum == height;
  }
  std::printf("%u of %u frames are right\n", right, frames);
  return right == frames ? 0 : 1;
}

int count_bright(const std::string& name, const grosr::device& device, pid_t other) {
  flow::executor where({.devices = {device}});
  flow::graph graph(where, {.name = "bright"});
  flow::node counter = graph.kernel("count", count_row{},
                                    {{"frame", flow::block_template::of<float>(width, height)},
                                     {"bright", flow::block_template::of<std::uint32_t>(height)}});
  auto from = graph.source<float>(counter["frame"]);
  auto counts = graph.sink<std::uint32_t>(counter["bright"]);
  graph.compile();
  flow::shared_port frames_in(from, name + ".frames", {.slots_on = device});
  flow::shared_port counts_out(counts, name + ".counts");
  int status = 1;
  waitpid(other, &status, 0);
  std::printf("%llu frames came, on %s\n",
              static_cast<unsigned long long>(frames_in.stats().blocks), device.name().c_str());
  return status == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const std::string name = "device-bright-" + std::to_string(getpid());
  const pid_t other = fork();  // before this process has threads, or has called CUDA
  if (other < 0) return std::perror("fork"), 1;
  if (other == 0) return draw_frames(name);
  return count_bright(name, argc > 1 ? grosr::device(argv[1]) : grosr::device::best(), other);
}
