#include "grosr/net/transport.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace grosr::net {

void nap::take() {
  constexpr unsigned yields = 64, doubles = 5;
  const unsigned n = turns_++;
  if (n < yields) return std::this_thread::yield();
  const unsigned longer = std::min((n - yields) / 8, doubles);
  std::this_thread::sleep_for(
      std::min(std::chrono::microseconds(10u << longer), std::chrono::microseconds(200)));
}

}  // namespace grosr::net
