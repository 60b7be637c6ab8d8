// Device memory: reading it, and atomics on it.
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "limits/limits.hpp"

namespace grosr::tool::limits {
namespace {

struct alignas(16) piece {
  std::uint32_t w[4];
};

struct read_kernel {
  const piece* from;
  std::uint64_t pieces;
  std::uint64_t* sum;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t step = std::uint64_t{simt::grid_size()} * simt::block_size();
    std::uint64_t mine = 0;
    std::uint64_t i = std::uint64_t{simt::block_id()} * simt::block_size() + simt::thread_id();
    for (; i + 7 * step < pieces; i += 8 * step) {
      piece v[8];
      for (unsigned k = 0; k < 8; ++k) v[k] = from[i + k * step];
      for (unsigned k = 0; k < 8; ++k) mine += v[k].w[0] + v[k].w[1] + v[k].w[2] + v[k].w[3];
    }
    for (; i < pieces; i += step) mine += from[i].w[0] + from[i].w[1] + from[i].w[2] + from[i].w[3];
    if (mine != 0) simt::atomic_ref<std::uint64_t>(*sum).fetch_add(mine, simt::relaxed);
  }
};

struct atomics_kernel {
  std::uint32_t* words;
  const std::uint32_t* zero;  // read, so that the compiler cannot merge what lanes add
  std::uint32_t spread_mask;  // 0: all on one word
  std::uint32_t group, turns;
  std::uint32_t* sink;
  GROSR_DEVICE void operator()() const {
    const unsigned me = simt::block_id() * simt::block_size() + simt::thread_id();
    std::uint32_t seen = 0;
    if (simt::thread_id() % group == 0) {
      std::uint32_t at = me * 2654435761u;
      const std::uint32_t shift = zero[simt::thread_id()];
      for (std::uint32_t i = 0; i < turns; ++i) {
        at = at * 1664525u + 1013904223u;
        seen += simt::atomic_ref<std::uint32_t>(words[((at >> 8) & spread_mask) + shift])
                    .fetch_add(group, simt::relaxed);
      }
    }
    if (seen == 0xffffffffu) *sink = seen;
  }
};

figure atomics(const device& d, unsigned group, std::uint32_t count, double lanes_target) {
  const unsigned threads = 512;
  const unsigned blocks = d.is_cuda() ? d.properties().sms * 4 : d.properties().sms;
  const double lanes = double(blocks) * threads;
  const auto turns = static_cast<std::uint32_t>(std::max(1.0, lanes_target / lanes));
  simt::buffer<std::uint32_t> words(d, simt::space::device, count),
      zero(d, simt::space::device, 1024), sink(d, simt::space::device, 1);
  const atomics_kernel kernel{words.data(), zero.data(), count - 1, group, turns, sink.data()};
  simt::stream s(d);
  const auto once = [&] {
    simt::launch(s, {blocks, threads}, kernel);
    s.wait();
  };
  once();
  double best = timed(once);
  unsigned runs = 2;
  for (; runs < 5; ++runs) best = std::min(best, timed(once));
  std::vector<std::uint32_t> got(count);
  words.copy_to(got);
  std::uint32_t sum = 0;  // wraps as the words do
  for (std::uint32_t w : got) sum += w;
  figure f{lanes * turns * 1e6 / best, ""};
  if (sum != static_cast<std::uint32_t>(std::uint64_t(lanes) * turns * runs))
    f.wrong = "atomics were lost: their sum is wrong";
  return f;
}

}  // namespace

figure memory_read(const device& d, std::size_t bytes) {
  bytes = std::min(bytes, d.properties().memory_free / 4);
  const std::uint64_t pieces = bytes / sizeof(piece);
  simt::buffer<piece> memory(d, simt::space::device, pieces);
  simt::buffer<std::uint64_t> sum(d, simt::space::device, 1);
  const piece ones[1] = {{{1, 2, 3, 4}}};
  memory.copy_from(ones);
  const simt::shape grid =
      d.is_cuda() ? simt::shape{d.properties().sms * 8, 256} : simt::shape{d.properties().sms, 32};
  simt::stream s(d);
  unsigned runs = 0;
  const auto once = [&] {
    simt::launch(s, grid, read_kernel{memory.data(), pieces, sum.data()});
    s.wait();
    ++runs;
  };
  once();
  double best = timed(once);
  for (unsigned i = 0; i < 4; ++i) best = std::min(best, timed(once));
  std::uint64_t got = 0;
  sum.copy_to({&got, 1});
  figure f{static_cast<double>(bytes) / best / 1e3, ""};
  if (got != 10u * runs) f.wrong = "the sum of what was read is wrong";
  return f;
}

figure one_address_atomics(const device& d, unsigned group) {
  return atomics(d, group, 1, d.is_cuda() ? 2e7 * group : 1e5);
}

figure spread_atomics(const device& d) { return atomics(d, 1, 2u << 20, d.is_cuda() ? 1e9 : 1e5); }

}  // namespace grosr::tool::limits
