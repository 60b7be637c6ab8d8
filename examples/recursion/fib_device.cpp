#include "recursion/fib.hpp"
#include "recursion/fib_tasks.hpp"

namespace grosr::recursion {

struct fib::state : runtime<fib_call, fib_sum> {
  using runtime::runtime;
};

fib::fib(const device& d, const runtime_options& o) : state_(new state(d, o)) {}
fib::~fib() = default;

std::uint64_t fib::run(std::uint32_t n, const progress_callback& between) {
  return await(*state_, state_->fork(fib_call{n}), between);
}

runtime_stats fib::stats() {
  state_->wait_all();
  return state_->stats();
}

}  // namespace grosr::recursion
