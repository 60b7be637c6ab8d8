// Recursion, as one writes it: a task forks two, and a continuation adds up what they bring.
#include <cstdio>
#include <grosr/grosr.hpp>

// [fib]
struct sum {
  using result = std::uint64_t;
  std::uint64_t a, b;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();  // a child failed: so do we
    context.give(a + b);
    return 0;
  }
};
struct fib {
  using result = std::uint64_t;
  std::uint32_t n;
  GROSR_DEVICE void operator()(auto& context) const {
    if (n < 2) return context.give(n);
    auto& next = context.join(sum{});
    context.fork(fib{n - 1}, &next.a);
    context.fork(fib{n - 2}, &next.b);
  }
};

int main() {
  grosr::runtime<fib, sum> runtime;
  const std::uint64_t n = runtime.fork(fib{20}).get();
  // [fib]
  std::printf("%llu\n", static_cast<unsigned long long>(n));
  return n == 6765 ? 0 : 1;
}
