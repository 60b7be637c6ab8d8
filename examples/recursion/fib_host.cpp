#include "recursion/fib.hpp"

namespace grosr::recursion {

std::uint64_t fib_on_host(std::uint32_t n) {
  return n < 2 ? n : fib_on_host(n - 1) + fib_on_host(n - 2);
}

std::uint64_t fib_number(std::uint32_t n) {
  std::uint64_t a = 0, b = 1;
  for (; n != 0; --n) {
    const std::uint64_t next = a + b;
    a = b;
    b = next;
  }
  return a;
}

}  // namespace grosr::recursion
