#include <memory>

#include "grosr/run/runtime.hpp"
#include "recursion/mergesort.hpp"
#include "recursion/mergesort_tasks.hpp"
#include "recursion/sort_memory.hpp"

namespace grosr::recursion {

struct mergesort::state {
  runtime<merge_sort, merge, joined, sort_tile, merge_tile> tasks;
  state(const device& d, const runtime_options& options) : tasks(d, options) {}
};

mergesort::mergesort(const device& d, const runtime_options& options)
    : state_(std::make_unique<state>(d, options)) {}
mergesort::~mergesort() = default;

void mergesort::run(const simt::buffer<std::uint32_t>& keys,
                    const simt::buffer<std::uint32_t>& scratch) {
  check_sort_memory(keys, scratch);
  const auto count = static_cast<std::uint32_t>(keys.size());
  if (count != 0) state_->tasks.fork(merge_sort{keys.data(), scratch.data(), count, false}).get();
}

runtime_stats mergesort::stats() const { return state_->tasks.stats(); }

}  // namespace grosr::recursion
