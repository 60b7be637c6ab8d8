// Calls in flight and calls a second stay within what was asked for, and none is lost for it.
#include <thread>

#include "support/errors.hpp"
#include "support/scale.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(call_limits);

using namespace std::chrono_literals;

struct count_calls {
  server_ref sys;
  std::uint32_t each;
  bool attempts;
  std::uint32_t* made;
  GROSR_DEVICE void operator()() const {
    simt::atomic_ref<std::uint32_t> all(*made);
    for (std::uint32_t i = 0; i < each;) {
      const long parent =
          attempts ? sys::syscall(sys.attempt(), SYS_getppid) : sys::syscall(sys, SYS_getppid);
      if (parent > 0) all.fetch_add(1, simt::relaxed);
      if (parent != -EAGAIN) ++i;
    }
  }
};

TEST_P(call_limits, of_calls_in_flight_make_the_others_wait) {
  for (bool attempts : {false, true}) {
    options o;
    o.threads = 2;
    o.calls_in_flight = 33;  // that is 64
    server s(where(), o);
    auto made = make<std::uint32_t>(1);
    const auto each = static_cast<std::uint32_t>(testing::scaled(20, 3));
    run(4, 128, count_calls{s.ref(), each, attempts, made.data()});
    EXPECT_EQ(contents(made)[0], 4 * 128 * each);
  }
}

TEST_P(call_limits, of_calls_a_second_make_the_others_wait) {
  options o;
  o.threads = 2;
  o.calls_per_second = 2000;
  server s(where(), o);
  auto made = make<std::uint32_t>(1);
  const auto began = std::chrono::steady_clock::now();
  run(1, 128, count_calls{s.ref(), 4, false, made.data()});
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(contents(made)[0], 512u);
  EXPECT_GT(took, 200ms) << "512 calls, of which 32 may come at once, at 2,000 a second";
  EXPECT_LT(took, 20s);
  s.drain(10s);
}

TEST_P(call_limits, that_are_impossible_are_refused) {
  const auto refused = [&](auto&& change) {
    options o;
    change(o);
    return testing::error_of([&] { server s(where(), o); }).code();
  };
  EXPECT_EQ(refused([](options& o) { o.calls_in_flight = 31; }), errc::invalid_option);
  EXPECT_EQ(refused([](options& o) { o.calls_in_flight = 1u << 24; }), errc::invalid_option);
  EXPECT_EQ(refused([](options& o) { o.calls_per_second = 2'000'000'000; }), errc::invalid_option);
  EXPECT_EQ(refused([](options& o) { o.records = 31; }), errc::invalid_option);
  EXPECT_EQ(refused([](options& o) { o.records = 16; }), errc::invalid_option);
  EXPECT_EQ(refused([](options& o) { o.threads = 257; }), errc::invalid_option);
}

TEST_P(call_limits, that_are_extreme_are_taken_as_they_are_meant) {
  const auto began = std::chrono::steady_clock::now();
  const auto nothing_lost = [&](const server& s) {
    auto made = make<std::uint32_t>(1);
    run(2, 128, count_calls{s.ref(), 3, false, made.data()});
    EXPECT_EQ(contents(made)[0], 2u * 128 * 3);
  };
  {
    options o;
    o.threads = 200;
    server s(where(), o);
    nothing_lost(s);
  }
  {
    options o;
    o.threads = 2;
    o.patience = std::chrono::milliseconds::max();
    o.exit_patience = std::chrono::milliseconds::max();
    o.spin = std::chrono::microseconds::max();
    o.calls_in_flight = 32;
    o.print_to = -1;
    server s(where(), o);
    nothing_lost(s);
  }
  {
    options o;
    o.threads = 1;
    server s(where(), o);
    s.coalesce(32, std::chrono::hours(1));
    std::thread shortens([&] {
      std::this_thread::sleep_for(50ms);
      s.coalesce(0, 0ns);
    });
    auto made = make<std::uint32_t>(1);
    run(1, 32, count_calls{s.ref(), 1, false, made.data()});
    EXPECT_EQ(contents(made)[0], 32u);
    shortens.join();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s * testing::slowdown);
}

struct print_a_lot {
  server_ref sys;
  GROSR_DEVICE void operator()() const {
    for (int i = 0; i < 50; ++i) print(sys, "{:>100000}", i);
  }
};

TEST_P(call_limits, of_printed_text_do_not_hold_who_prints_to_nobody) {
  options o;
  o.threads = 1;
  o.print_to = -1;
  server s(where(), o);
  run(1, 64, print_a_lot{s.ref()});
  s.drain(10s * testing::slowdown);
  EXPECT_EQ(s.statistics().unwritten, 0u);
}

}  // namespace
}  // namespace grosr::sys
