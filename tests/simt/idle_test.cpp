// A launch whose lanes all poll leaves the processor to others, and still reacts.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/shared.hpp"
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

/// The same for whole blocks, whose warps wait for each other at each look.
struct poll_by_block {
  std::uint32_t* word;
  GROSR_DEVICE void operator()() const {
    auto& found = block_shared<std::uint32_t>();
    for (unsigned turn = 0;; ++turn) {
      if (thread_id() == 0)
        found = atomic_ref<std::uint32_t, scope::system>(*word).load(acquire) != 0 ? 1 : 0;
      sync_block();
      if (found != 0) return;
      sync_block();
      pause(turn, "work");
    }
  }
};

template <class Kernel>
void expect_idle() {
  std::uint32_t word = 0;
  stream s{device()};
  launch(s, {4, 128}, Kernel{&word});
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const double used = cpu_seconds() - before;
  atomic_ref<std::uint32_t, scope::system>(word).store(1, release);
  const auto asked = std::chrono::steady_clock::now();
  s.wait();
  const std::chrono::duration<double> reaction = std::chrono::steady_clock::now() - asked;
  ::testing::Test::RecordProperty("cpu_percent", std::to_string(used / 0.5 * 100));
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  EXPECT_LT(used, 0.5 * 0.25) << "seconds of CPU in half a second";
#endif
  EXPECT_LT(reaction.count(), 0.5);
}

TEST(idle, costs_little) { expect_idle<poll_together>(); }
TEST(idle, costs_little_where_blocks_look) { expect_idle<poll_by_block>(); }

// Nobody sleeps who has something to do: a barrier that the last warp comes to lets the others go
// on, and is nothing to wait for.
TEST(idle, is_not_who_passes_barriers) {
  constexpr unsigned barriers = 3000;
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  host::run({1, 4, 1}, [] {
    for (unsigned i = 0; i < barriers; ++i) sync_block();
  });
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, long{barriers} / 10) << "times it gave way";
}

}  // namespace
}  // namespace grosr::simt
