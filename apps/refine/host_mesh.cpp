#include "host_mesh.hpp"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

#include "cli/interrupt.hpp"

namespace grosr::refine {
namespace {

constexpr unsigned side = fine_side;

void advance(std::vector<std::uint32_t>& fine, std::vector<std::uint32_t>& before) {
  before = fine;
  // What flows between two neighbours is taken from the one and given to the other.
  for (unsigned d = 0, far = 1; d < 3; ++d, far *= side)
    for (std::uint32_t i = 0; i < fine_words; ++i) {
      if (i / far % side == side - 1) continue;
      const auto f = static_cast<std::uint32_t>(flow(before[i], before[i + far]));
      fine[i] -= f;
      fine[i + far] += f;
    }
}

// All steps of one block: no block needs another.
void compute(const mesh_shape& m, std::uint32_t block, std::uint32_t* coarse,
             std::vector<std::atomic<std::uint64_t>>& refined) {
  std::vector<std::uint32_t> fine, before;
  for (std::uint32_t w = 0; w < coarse_words; ++w) coarse[w] = first_value(block, w);
  for (std::uint32_t step = 0; step < m.steps; ++step) {
    const bool now = is_touched(m, step, block);
    if (now && fine.empty()) {
      fine.resize(fine_words);
      for (std::uint32_t i = 0; i < fine_words; ++i) {
        const std::uint32_t cell = i % fine_cells;
        const std::uint32_t c = coarse[i / fine_cells * coarse_cells + coarse_of(cell)];
        fine[i] = c / cells_in_one + (place_in_coarse(cell) < c % cells_in_one ? 1 : 0);
      }
    }
    if (now) {
      advance(fine, before);
      refined[step].fetch_add(1);
    } else if (!fine.empty()) {
      std::fill_n(coarse, coarse_words, 0);
      for (std::uint32_t i = 0; i < fine_words; ++i)
        coarse[i / fine_cells * coarse_cells + coarse_of(i % fine_cells)] += fine[i];
      fine.clear();
    }
  }
}

}  // namespace

host_result compute_on_host(const mesh_shape& m) {
  host_result r;
  r.coarse.resize(std::size_t{m.blocks()} * coarse_words);
  std::vector<std::atomic<std::uint64_t>> refined(m.steps);
  std::atomic<std::uint32_t> next{0};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t)
    all.emplace_back([&] {
      for (std::uint32_t b = next++; b < m.blocks() && !tool::interrupt::requested(); b = next++)
        compute(m, b, r.coarse.data() + std::size_t{b} * coarse_words, refined);
    });
  for (std::thread& t : all) t.join();
  tool::interrupt::check();
  for (const auto& n : refined) r.refined.push_back(n.load());
  r.total = std::accumulate(r.coarse.begin(), r.coarse.end(), std::uint64_t{0});
  return r;
}

}  // namespace grosr::refine
