#include <atomic>
#include <thread>

#include "grosr/simt/doorbell.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/wait.hpp"
#include "limits/limits.hpp"

namespace grosr::tool::limits {
namespace {

struct ring_and_wait {
  simt::doorbell_ref doorbell;
  std::uint32_t* answer;
  std::uint32_t n;
  std::uint64_t* stamps;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    simt::atomic_ref<std::uint32_t, simt::scope::system> word(*answer);
    for (std::uint32_t i = 0; i < n; ++i) {
      simt::wait_until([] { return false; }, simt::clock_ns() + 2'000'000, nullptr, "the pause");
      const std::uint32_t before = word.load(simt::relaxed);
      const std::uint64_t began = simt::clock_ns();
      simt::wait_until(
          [&] {
            doorbell.ring();
            return word.load(simt::relaxed) != before;
          },
          began + 1'000'000'000, nullptr, "who was woken");
      stamps[i] = simt::clock_ns() - began;
    }
  }
};

}  // namespace

times doorbell_ping(const device& d, unsigned n) {
  simt::buffer<std::uint32_t> answer(d, simt::space::pinned, 1);
  simt::buffer<std::uint64_t> stamps(d, simt::space::device, n);
  const auto answer_it = [&] {
    std::atomic_ref<std::uint32_t>(answer[0]).fetch_add(1, std::memory_order_relaxed);
  };
  simt::doorbell doorbell(d, answer_it);
  std::atomic<bool> over{false};
  std::thread sleeper([&] {
    while (!over.load())
      if (doorbell.arm([&] { return over.load(); }) && doorbell.sleep() && !d.is_cuda())
        answer_it();
  });
  simt::run(d, {1, 32}, ring_and_wait{doorbell.ref(), answer.data(), n, stamps.data()});
  over = true;
  doorbell.wake();
  sleeper.join();
  std::vector<std::uint64_t> ns(n);
  stamps.copy_to(ns);
  std::vector<double> us;
  for (unsigned i = n / 10; i < n; ++i) us.push_back(static_cast<double>(ns[i]) / 1e3);
  return {samples(std::move(us)), ""};
}

}  // namespace grosr::tool::limits
