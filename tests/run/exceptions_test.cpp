// On the host a task may throw: that ends the runtime as a fault on a GPU does, not the process.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "grosr/run/runtime.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/wait.hpp"
#include "support/errors.hpp"

namespace grosr::testing {
namespace {

struct thrower {
  std::uint32_t what;
  void operator()(auto&) const {
    if (what == 1) throw std::runtime_error("boom");
    if (what == 2) throw 5;
  }
};

void expect_lost(const error& e, const std::string& reason) {
  const std::string text = e.what();
  EXPECT_EQ(e.code(), errc::device_lost) << text;
  EXPECT_NE(text.find(reason), std::string::npos) << text;
  EXPECT_NE(text.find("thrower"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST(throwing_task, ends_the_runtime_and_not_the_process) {
  runtime<thrower> rt(device("host:0"));
  rt.submit(thrower{0}).wait();
  const ticket t = rt.submit(thrower{1});
  expect_lost(error_of([&] { t.wait(); }), "boom");
  expect_lost(error_of([&] { rt.wait_all(); }), "boom");
  expect_lost(error_of([&] { rt.submit(thrower{0}); }), "boom");
  expect_lost(error_of([&] { rt.stop(); }), "boom");
}

TEST(throwing_task, may_throw_anything) {
  runtime<thrower> rt(device("host:0"));
  rt.submit(thrower{2});
  expect_lost(error_of([&] { rt.wait_all(); }), "no std::exception");
}

TEST(throwing_task, does_not_hold_up_destruction) {
  runtime<thrower> rt(device("host:0"));
  rt.submit(thrower{1});
}

/// Waits for the gate, and throws.
struct gated_thrower {
  std::uint32_t* gate;  ///< pinned
  void operator()(auto&) const {
    if (gate == nullptr) return;
    simt::wait_until(
        [&] {
          return simt::atomic_ref<std::uint32_t, simt::scope::system>(*gate).load(simt::acquire) !=
                 0;
        },
        simt::forever, nullptr, "the gate");
    throw std::runtime_error("boom");
  }
};

// Who waits for all holds submitters back for a quarter of the time waited so far, also when the
// wait has failed meanwhile.
TEST(throwing_task, is_told_of_to_submitters_who_are_held_back) {
  using namespace std::chrono_literals;
  runtime<gated_thrower> rt(device("host:0"));
  simt::buffer<std::uint32_t> gate(device("host:0"), simt::space::pinned, 1);
  gate[0] = 0;
  const ticket t = rt.submit(gated_thrower{gate.data()});
  std::thread waits([&] { error_of([&] { rt.wait_all(); }); });
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < 300ms || rt.try_submit(gated_thrower{nullptr}))
    std::this_thread::sleep_for(1ms);
  simt::atomic_ref<std::uint32_t, simt::scope::system>(gate[0]).store(1, simt::release);
  error_of([&] { t.wait(); });
  const error e = error_of([&] { rt.try_submit(gated_thrower{nullptr}); });
  EXPECT_EQ(e.code(), errc::device_lost) << e.what();
  waits.join();
}

/// Not all of its lanes come to each sync().
struct half_synced {
  static constexpr grosr::width width = grosr::width::warp;
  static constexpr unsigned packet = __LINE__ + 3;
  std::uint32_t result;
  void operator()(auto& context) const {
    if (context.rank() != 5) context.sync();
  }
};

TEST(divergent_sync, is_blamed_on_the_line_that_calls_it) {
  const std::string place = "exceptions_test.cpp:" + std::to_string(half_synced::packet);
  runtime<half_synced> rt(device("host:0"));
  const ticket t = rt.submit(half_synced{0});
  const std::string text = error_of([&] { t.wait(); }).what();
  EXPECT_NE(text.find("context.sync"), std::string::npos) << text;
  EXPECT_NE(text.find(place), std::string::npos) << text;
}

}  // namespace
}  // namespace grosr::testing
