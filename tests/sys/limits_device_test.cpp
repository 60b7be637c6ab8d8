// Calls in flight and calls a second stay within what was asked for, and none is lost for it.
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
}

}  // namespace
}  // namespace grosr::sys
