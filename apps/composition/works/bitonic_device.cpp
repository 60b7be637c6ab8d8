#include "grosr/simt/shared.hpp"
#include "kernels.hpp"
#include "operations.hpp"
#include "works.hpp"

namespace grosr::composition {
namespace {

/// The lower one of the i-th pair of elements that are `distance` apart.
GROSR_DEVICE std::uint32_t lower_of_pair(std::uint32_t i, std::uint32_t distance) {
  return 2 * i - (i & (distance - 1));
}

/// Runs of `stage` elements ascend and descend in turns.
GROSR_DEVICE bool out_of_order(float lower, float upper, std::uint32_t index, std::uint32_t stage) {
  return (lower > upper) == ((index & stage) == 0);
}

struct block_of_elements {
  float at[bitonic_block];
};

struct sort_locally {
  const float* from;
  float* to;
  std::uint32_t elements, first_stage, last_stage;

  GROSR_DEVICE void operator()() const {
    block_of_elements& block = simt::block_shared<block_of_elements>();
    const std::uint32_t size = elements < bitonic_block ? elements : bitonic_block;
    const std::uint32_t begin = simt::block_id() * size;
    const std::uint32_t thread = simt::thread_id(), threads = simt::block_size();
    for (std::uint32_t i = thread; i < size; i += threads) block.at[i] = from[begin + i];
    for (std::uint32_t stage = first_stage; stage <= last_stage; stage *= 2)
      for (std::uint32_t distance = (stage < size ? stage : size) / 2; distance != 0;
           distance /= 2) {
        simt::sync_block();
        for (std::uint32_t i = thread; i < size / 2; i += threads) {
          const std::uint32_t low = lower_of_pair(i, distance);
          const float lower = block.at[low], upper = block.at[low + distance];
          if (out_of_order(lower, upper, begin + low, stage)) {
            block.at[low] = upper;
            block.at[low + distance] = lower;
          }
        }
      }
    simt::sync_block();
    for (std::uint32_t i = thread; i < size; i += threads) to[begin + i] = block.at[i];
  }
};

struct pass {
  const float* from;
  float* to;
  std::uint32_t elements, stage, distance;

  GROSR_DEVICE void operator()() const {
    each(elements / 2, [&](std::uint32_t i) {
      const std::uint32_t low = lower_of_pair(i, distance);
      const float lower = from[low], upper = from[low + distance];
      const bool swap = out_of_order(lower, upper, low, stage);
      to[low] = swap ? upper : lower;
      to[low + distance] = swap ? lower : upper;
    });
  }
};

}  // namespace

void launch_bitonic_step(simt::stream& s, const step& what, const places& at) {
  const auto [elements, second, third] = what.parameters;
  const float* from = at.reads[0];
  float* to = at.results[0];
  constexpr unsigned sorting_threads = 256;
  if (what.what == operation::bitonic_local)
    simt::launch<sorting_threads>(s,
                                  {(elements + bitonic_block - 1) / bitonic_block, sorting_threads},
                                  sort_locally{from, to, elements, second, third});
  else
    simt::launch<block_threads>(s, threads_for(elements / 2),
                                pass{from, to, elements, second, third});
}

}  // namespace grosr::composition
