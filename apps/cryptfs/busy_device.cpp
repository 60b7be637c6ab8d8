#include <algorithm>

#include "busy.hpp"
#include "grosr/simt/lanes.hpp"

namespace grosr::cryptfs {
namespace {

constexpr unsigned most_threads = 1024;

/// Steps that each need the one before, so that they take as long as they say.
struct busy {
  std::uint64_t steps;
  std::uint32_t* never;

  GROSR_DEVICE void operator()() const {
    std::uint32_t x = simt::thread_id() + 1;
    for (std::uint64_t i = 0; i < steps; ++i) {
      x ^= x << 13;
      x ^= x >> 17;
      x ^= x << 5;
    }
    if (x == 0) *never = 1;  // it is never 0, which no compiler knows
  }
};

/// As many threads as fit, so that nothing else has room beside them. On the host each is a fiber.
simt::shape whole(const device& d) {
  const device_properties p = d.properties();
  if (!d.is_cuda()) return {p.sms, simt::warp_size};
  return {p.sms * std::max(1u, p.max_threads_per_sm / most_threads), most_threads};
}

}  // namespace

busy_kernel::busy_kernel(const device& d)
    : grid_(whole(d)), stream_(d), never_(d, simt::space::device, 1) {}

void busy_kernel::run(std::uint64_t steps) {
  simt::launch(stream_, grid_, busy{steps, never_.data()});
  stream_.wait();
}

}  // namespace grosr::cryptfs
