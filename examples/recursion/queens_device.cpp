#include "recursion/queens.hpp"
#include "recursion/queens_tasks.hpp"

namespace grosr::recursion {

struct queens::state : runtime<queens_place, queens_sum> {
  using runtime::runtime;
};

queens::queens(const device& d, const runtime_options& o) : state_(new state(d, o)) {}
queens::~queens() = default;

// Mirrored boards come in pairs: a first queen in the left half stands for one in the right half.
std::uint64_t queens::run(std::uint32_t n, std::uint32_t base, const progress_callback& between) {
  const auto fork = [&](std::uint32_t candidates) {
    return state_->fork(queens_place{{0, 0, 0},
                                     candidates,
                                     static_cast<std::uint16_t>(n),
                                     static_cast<std::uint16_t>(n),
                                     static_cast<std::uint16_t>(base)});
  };
  if (n <= base) return await(*state_, fork(simt::first_bits(n)), between);
  const auto middle = n % 2 != 0 ? fork(1u << n / 2) : future<std::uint64_t>();
  const std::uint64_t twice = n > 1 ? await(*state_, fork(simt::first_bits(n / 2)), between) : 0;
  return 2 * twice + (n % 2 != 0 ? await(*state_, middle, between) : 0);
}

runtime_stats queens::stats() {
  state_->wait_all();
  return state_->stats();
}

}  // namespace grosr::recursion
