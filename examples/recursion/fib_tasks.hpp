// fib(n) = fib(n - 1) + fib(n - 2), a task for each call: nearly nothing but forks and joins.
#pragma once

#include "grosr/run/runtime.hpp"

namespace grosr::recursion {

struct fib_sum {
  using result = std::uint64_t;
  std::uint64_t a, b;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(a + b);
    return 0;
  }
};

struct fib_call {
  using result = std::uint64_t;
  std::uint32_t n;
  GROSR_DEVICE void operator()(auto& context) const {
    if (n < 2) return context.give(n);
    auto& next = context.join(fib_sum{});
    context.fork(fib_call{n - 1}, &next.a);
    context.fork(fib_call{n - 2}, &next.b);
  }
};

}  // namespace grosr::recursion
