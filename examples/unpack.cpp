// A node whose output is as long as the device finds: pictures that were packed as runs of equal
// pixels are unpacked, and made darker.
#include <cstdint>
#include <cstdio>
#include <vector>

#include "grosr/flow/graph.hpp"
#include "grosr/flow/heap_out.hpp"

namespace flow = grosr::flow;
namespace simt = grosr::simt;

namespace {

struct pixel_run {
  std::uint32_t length;
  std::uint8_t value;
};

struct unpack {  // one block of threads
  flow::in<pixel_run> packed;
  flow::heap_out<std::uint8_t> pixels;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) {
      std::size_t all = 0;
      for (const pixel_run& r : packed) all += r.length;
      pixels.allocate(all);
    }
    simt::sync_block();
    std::uint8_t* to = pixels.data();
    if (to == nullptr) return;  // no pixels, or no memory: then the node fails
    for (const pixel_run& r : packed) {
      for (std::uint32_t i = simt::thread_id(); i < r.length; i += simt::block_size())
        to[i] = r.value;
      to += r.length;
    }
  }
};

struct darken {
  GROSR_DEVICE void operator()(flow::point p, flow::inout<std::uint8_t> pixels) const {
    pixels[p.index] /= 2;
  }
};

}  // namespace

int main() {
  flow::executor where;
  flow::graph graph(where, {.name = "unpack", .heap_bytes = std::size_t{16} << 20});
  const auto runs = flow::block_template::variable<pixel_run>(1000);
  const auto picture = flow::block_template::variable<std::uint8_t>(std::size_t{1} << 30);
  flow::node unpacked = graph.on_stream(
      "unpack",
      [](simt::stream& stream, flow::in<pixel_run> packed, flow::heap_out<std::uint8_t> pixels) {
        simt::launch(stream, {1, 256}, unpack{packed, pixels});
      },
      {{"packed", runs}, {"pixels", picture}});
  flow::node darkened = graph.kernel("darken", darken{}, {{"pixels", picture}});
  graph.connect(unpacked["pixels"], darkened["pixels"]);
  auto packed = graph.source<pixel_run>(unpacked["packed"]);
  auto pictures = graph.sink<std::uint8_t>(darkened["pixels"]);
  graph.compile();

  std::uint32_t right = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    packed.push(std::vector<pixel_run>{{i * 1000, 200}, {5, 10}});
    const std::vector<std::uint8_t> pixels = pictures.pull_elements();
    right +=
        pixels.size() == i * 1000 + 5 && pixels.front() == (i == 0 ? 5 : 100) && pixels.back() == 5;
  }
  std::printf("%u of 20 pictures are right\n", right);
  return right == 20 ? 0 : 1;
}
