// A doorbell wakes who sleeps, however many ring it at a time.
#include <atomic>
#include <thread>

#include "grosr/simt/doorbell.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::simt {
namespace {

class doorbells : public testing::device_test {};
INSTANTIATE_TEST_SUITE_P(on, doorbells, ::testing::Values("host:0"), testing::device_test_name);

struct ring_often {
  doorbell_ref doorbell;
  GROSR_DEVICE void operator()() const {
    for (unsigned i = 0; i < 20; ++i) {
      doorbell.ring();
      pause(i % 2, "nothing");
    }
  }
};

TEST_P(doorbells, wake_after_many_have_rung_at_a_time) {
  testing::for_seeds(
      10,
      [&] {
        doorbell b(where());
        std::atomic<bool> ends{false};
        std::atomic<unsigned> rung{0};
        std::thread sleeper([&] {
          while (!ends)
            if (b.arm([&] { return ends.load(); }) && b.sleep()) ++rung;
        });
        run(2, 64, ring_often{b.ref()});
        for (unsigned i = 0; i < 3; ++i) {
          const unsigned before = rung;
          const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
          while (rung == before && std::chrono::steady_clock::now() < end) {
            b.ref().ring();
            std::this_thread::sleep_for(std::chrono::microseconds(100));
          }
          EXPECT_GT(rung, before) << "nobody woke";
          if (rung == before) break;
        }
        ends = true;
        b.wake();
        sleeper.join();
      },
      3);
}

}  // namespace
}  // namespace grosr::simt
