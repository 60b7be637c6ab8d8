#include <memory>

#include "grosr/run/runtime.hpp"
#include "recursion/cilksort.hpp"
#include "recursion/cilksort_tasks.hpp"
#include "recursion/sort_memory.hpp"

namespace grosr::recursion {

struct cilksort::state {
  runtime<cilk_sort, merge_pairs, merge, joined, sort_tile, merge_tile> tasks;
  state(const device& d, const runtime_options& options) : tasks(d, options) {}
};

cilksort::cilksort(const device& d, const runtime_options& options)
    : state_(std::make_unique<state>(d, options)) {}
cilksort::~cilksort() = default;

void cilksort::run(const simt::buffer<std::uint32_t>& keys,
                   const simt::buffer<std::uint32_t>& scratch) {
  check_sort_memory(keys, scratch);
  const auto count = static_cast<std::uint32_t>(keys.size());
  if (count != 0) state_->tasks.fork(cilk_sort{keys.data(), scratch.data(), count}).get();
}

runtime_stats cilksort::stats() const { return state_->tasks.stats(); }

}  // namespace grosr::recursion
