// A GPU task that never looks up, or that touches memory it must not, costs the device, not the
// process: every call says what was in flight, and the program exits cleanly. Each test does it in
// a process of its own.
#include <chrono>
#include <cstdio>
#include <string>

#include "run/tasks.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

struct endless {
  std::uint32_t* cell;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t> c(*cell);
    while (c.load(simt::relaxed) != 12345) {
    }
  }
};

struct touches {
  std::uint64_t address;
  GROSR_DEVICE void operator()(auto&) const {
    *reinterpret_cast<volatile std::uint32_t*>(address) = 1;
  }
};

struct harmless {
  std::uint32_t* cell;
  GROSR_DEVICE void operator()(auto&) const { add_one(cell); }
};

using fragile_runtime = runtime<endless, touches, harmless>;

class device_lost : public device_test {
 protected:
  void SetUp() override {
    device_test::SetUp();
    if (!IsSkipped() && !where().is_cuda()) GTEST_SKIP() << "only a GPU can be lost";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};
INSTANTIATE_TEST_SUITE_P(on, device_lost, ::testing::Values("host:0", "cuda:0"), device_test_name);

/// Ends the process with 1, unless `call` throws an error of that code that says `words`.
template <class Call>
void demand(const char* what, errc code, const std::string& words, Call&& call) {
  try {
    call();
    std::fprintf(stderr, "%s: nothing was thrown\n", what);
  } catch (const error& e) {
    if (e.code() == code && std::string(e.what()).find(words) != std::string::npos) return;
    std::fprintf(stderr, "%s: threw %s\n", what, e.what());
  }
  std::exit(1);
}

void lose_it_by_an_address() {
  {
    fragile_runtime rt(device("cuda:0"), small_options());
    const simt::buffer<std::uint32_t> cell(rt.where(), simt::space::device, 1);
    rt.submit(harmless{cell.data()}).wait();
    const ticket t = rt.submit(touches{16});
    demand("wait", errc::device_lost, "touches", [&] { t.wait(); });
    demand("wait_for", errc::device_lost, "touches", [&] { t.wait_for(1s); });
    demand("wait_all", errc::device_lost, "touches", [&] { rt.wait_all(); });
    demand("submit", errc::device_lost, "touches", [&] { rt.submit(harmless{cell.data()}); });
    demand("try_submit", errc::device_lost, "", [&] { rt.try_submit(harmless{cell.data()}); });
    demand("park", errc::device_lost, "", [&] { rt.park(); });
    demand("stop", errc::device_lost, "touches", [&] { rt.stop(); });
    demand("stop", errc::device_lost, "", [&] { rt.stop(1s); });
    if (rt.stats().submitted != 2) std::exit(2);
    rt.errors();
    rt.resident();
  }
  std::exit(0);
}

TEST_P(device_lost, by_an_illegal_address_names_the_task) {
  EXPECT_EXIT(lose_it_by_an_address(), ::testing::ExitedWithCode(0), "");
}

void lose_it_by_a_spawned_task() {
  {
    fragile_runtime rt(device("cuda:0"), small_options());
    std::vector<touches> tasks(1000, touches{0x7fff'0000'0000'0001});  // misaligned too
    const ticket t = rt.submit(tasks);
    demand("wait", errc::device_lost, "touches", [&] { t.wait(); });
  }
  // Nothing more can run, but it can be said.
  demand("another runtime", errc::device_lost, "", [] {
    fragile_runtime rt(device("cuda:0"), small_options());
    const simt::buffer<std::uint32_t> cell(rt.where(), simt::space::device, 1);
    rt.submit(harmless{cell.data()}).wait();
  });
  std::exit(0);
}

TEST_P(device_lost, by_many_tasks_leaves_a_clear_error_behind) {
  EXPECT_EXIT(lose_it_by_a_spawned_task(), ::testing::ExitedWithCode(0), "");
}

void hang_it() {
  {
    runtime_options o = small_options();
    o.watchdog = 500ms;
    fragile_runtime rt(device("cuda:0"), o);
    const simt::buffer<std::uint32_t> cell(rt.where(), simt::space::device, 1);
    const auto before = std::chrono::steady_clock::now();
    const ticket t = rt.submit(endless{cell.data()});
    demand("wait", errc::watchdog, "endless", [&] { t.wait(); });
    demand("wait_all", errc::watchdog, "endless", [&] { rt.wait_all(); });
    demand("submit", errc::watchdog, "endless", [&] { rt.submit(harmless{cell.data()}); });
    demand("stop", errc::watchdog, "endless", [&] { rt.stop(); });
    if (std::chrono::steady_clock::now() - before > 20s) std::exit(2);
  }
  std::exit(0);
}

TEST_P(device_lost, by_an_endless_task_trips_the_watchdog) {
  EXPECT_EXIT(hang_it(), ::testing::ExitedWithCode(0), "");
}

void hang_it_and_stop() {
  {
    fragile_runtime rt(device("cuda:0"), small_options());
    const simt::buffer<std::uint32_t> cell(rt.where(), simt::space::device, 1);
    rt.submit(endless{cell.data()});
    demand("stop", errc::timed_out, "not run", [&] { rt.stop(200ms); });
  }
  std::exit(0);
}

TEST_P(device_lost, by_an_endless_task_does_not_hold_up_stop) {
  EXPECT_EXIT(hang_it_and_stop(), ::testing::ExitedWithCode(0), "");
}

void leave_it_hanging() {
  {
    runtime_options o = small_options();
    o.watchdog = 500ms;
    const simt::buffer<std::uint32_t> cell(device("cuda:0"), simt::space::device, 1);
    fragile_runtime rt(device("cuda:0"), o);
    rt.submit(endless{cell.data()});
  }
  std::exit(0);
}

TEST_P(device_lost, by_an_endless_task_does_not_hold_up_destruction) {
  EXPECT_EXIT(leave_it_hanging(), ::testing::ExitedWithCode(0), "");
}

// cudaFree waits for the kernel, and keeps every other CUDA call of the process waiting.
void free_while_it_hangs() {
  {
    runtime_options o = small_options();
    o.watchdog = 500ms;
    fragile_runtime rt(device("cuda:0"), o);
    simt::buffer<std::uint32_t> cell(rt.where(), simt::space::device, 1);
    const ticket t = rt.submit(endless{cell.data()});
    if (t.wait_for(50ms)) std::exit(3);
    cell = {};
    demand("wait", errc::watchdog, "endless (1 worker)", [&] { t.wait(); });
  }
  std::exit(0);
}

TEST_P(device_lost, by_an_endless_task_does_not_hold_up_cuda_calls) {
  EXPECT_EXIT(free_while_it_hangs(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace grosr::testing
