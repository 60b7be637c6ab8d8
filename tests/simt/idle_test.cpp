// A launch whose lanes all poll leaves the processor to others, and still reacts.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::simt {
namespace {

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  auto seconds = [](timeval t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

// As resident kernels idle: one lane looks, all lanes hear of it.
struct poll_together {
  std::uint32_t* word;
  GROSR_DEVICE void operator()() const {
    for (unsigned turn = 0;; ++turn) {
      const bool found =
          lane_id() == 0 && atomic_ref<std::uint32_t, scope::system>(*word).load(acquire) != 0;
      if (any(full_mask, found)) return;
      pause(turn, "work");
    }
  }
};

TEST(idle, costs_little) {
  std::uint32_t word = 0;
  stream s{device()};
  launch(s, {4, 128}, poll_together{&word});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double used = cpu_seconds() - before;
  atomic_ref<std::uint32_t, scope::system>(word).store(1, release);
  const auto asked = std::chrono::steady_clock::now();
  s.wait();
  const std::chrono::duration<double> reaction = std::chrono::steady_clock::now() - asked;
  RecordProperty("cpu_percent", std::to_string(used / 0.5 * 100));
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(used, 0.5 * 0.25) << "seconds of CPU in half a second";
#endif
  EXPECT_LT(reaction.count(), 0.5);
}

}  // namespace
}  // namespace grosr::simt
