// Handlers get what kernels pass and kernels get what handlers return, whatever that is.
#include <atomic>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "support/scale.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(handlers);

enum class shade : std::uint8_t { dark = 200 };
struct pair_of_words {
  std::int32_t a, b;
};

struct all_types {
  static constexpr std::uint16_t number = 0;
  std::atomic<int>* right;
  long operator()(bool a, char b, std::int16_t c, const std::uint64_t& d, float e, double f) const {
    *right += a && b == 'x' && c == -300 && d == ~std::uint64_t{0} - 1 && e == 0.25f && f == -1e100;
    return -1000000000000;
  }
};
struct more_types {
  static constexpr std::uint16_t number = 1;
  std::atomic<int>* right;
  int operator()(shade a, pair_of_words b, const void* c, std::uint32_t d) const {
    *right += a == shade::dark && b.a == 7 && b.b == -8 && c == right && d == 4000000000u;
    return -5;
  }
};
struct no_result {
  static constexpr std::uint16_t number = 2;
  std::atomic<int>* right;
  void operator()() { ++*right; }
};
struct throws_errno {
  static constexpr std::uint16_t number = 3;
  long operator()(int e) const { throw std::system_error(e, std::generic_category()); }
};
struct throws_other {
  static constexpr std::uint16_t number = 4;
  long operator()(bool grosr_s) const {
    if (grosr_s) throw error(errc::timed_out, "not an errno");
    throw 5;
  }
};
struct returns_it {
  static constexpr std::uint16_t number = 16383;
  long operator()(long value) const { return value; }
};
struct not_installed {
  static constexpr std::uint16_t number = 100;
};

struct call_all {
  server_ref sys;
  void* right;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    r[i++] =
        call<all_types>(sys, true, 'x', std::int16_t{-300}, ~std::uint64_t{0} - 1, 0.25f, -1e100);
    r[i++] = call<more_types>(sys, shade::dark, pair_of_words{7, -8}, right, 4000000000u);
    r[i++] = call<no_result>(sys);
    r[i++] = call<throws_errno>(sys, ENOSPC);
    r[i++] = call<throws_errno>(sys, 0);
    r[i++] = call<throws_other>(sys, true);
    r[i++] = call<throws_other>(sys, false);
    r[i++] = call<not_installed>(sys);
    r[i++] = call<returns_it>(sys, 1L << 62);
    for (long value = -4097; value <= -4093; ++value) r[i++] = call<returns_it>(sys, value);
  }
};

TEST_P(handlers, take_and_return_all_types) {
  std::atomic<int> right{0};
  server s(where());
  s.install(all_types{&right});
  s.install(more_types{&right});
  s.install(no_result{&right});
  s.install(throws_errno{});
  s.install(throws_other{});
  s.install(returns_it{});
  auto r = make<std::int64_t>(14);
  run(1, 32, call_all{s.ref(), &right, r.data()});
  EXPECT_EQ(contents(r),
            (std::vector<std::int64_t>{-1000000000000, -5, 0, -ENOSPC, -EIO, -EIO, -EIO, -ENOSYS,
                                       std::int64_t{1} << 62, -4097, -4096, -4095, -4094, -4093}));
  EXPECT_EQ(right, 3);
  s.drain(std::chrono::seconds(10));
  EXPECT_EQ(s.statistics().thrown, 4u);
}

struct add_one {
  static constexpr std::uint16_t number = 5;
  long more;
  long operator()(long value) const { return value + more; }
};

// Calls until the other handler has answered.
struct call_on {
  server_ref sys;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    long before = 0;
    for (;;) {
      const long got = call<add_one>(sys, 40L);
      if (got != 41 && got != 42)
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
      // Whoever has seen the new one never sees the old one again.
      if (got < before) simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
      before = got;
      if (got != 41) return;
    }
  }
};

TEST_P(handlers, are_replaced_while_kernels_call) {
  options o;
  o.threads = 2;
  server s(where(), o);
  s.install(add_one{1});
  auto wrong = make<std::uint32_t>(1);
  simt::stream stream(where());
  simt::launch(stream, {2, 64}, call_on{s.ref(), wrong.data()});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  s.install(add_one{2});
  stream.wait();
  EXPECT_EQ(contents(wrong)[0], 0u);
}

struct call_diverged {
  server_ref sys;
  std::uint32_t turns;
  std::uint64_t* sums;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < turns; ++i) {
      const std::uint32_t n = testing::scramble(self * 1000 + i);
      if (n % 4 == 0)
        sum += static_cast<std::uint64_t>(call<add_one>(sys, long{n}));
      else if (n % 4 == 1)
        sum += static_cast<std::uint64_t>(call<returns_it>(sys, long{n}));
      else if (n % 4 == 2)
        sum += static_cast<std::uint64_t>(nothing(sys));
      else
        for (std::uint32_t k = 0; k < n % 3; ++k)
          sum += static_cast<std::uint64_t>(call<add_one>(sys, long{k}));
    }
    sums[self] = sum;
  }
};

void expect_diverged_calls(device d, const options& o, std::uint32_t turns) {
  server s(d, o);
  s.install(add_one{1});
  s.install(returns_it{});
  simt::buffer<std::uint64_t> sums(d, simt::space::device, 256);
  simt::run(d, {2, 128}, call_diverged{s.ref(), turns, sums.data()});
  std::vector<std::uint64_t> got(256), expected(256);
  sums.copy_to(got);
  for (std::uint32_t self = 0; self < 256; ++self)
    for (std::uint32_t i = 0; i < turns; ++i) {
      const std::uint32_t n = testing::scramble(self * 1000 + i);
      if (n % 4 < 2) expected[self] += std::uint64_t{n} + (n % 4 == 0 ? 1 : 0);
      if (n % 4 == 3)
        for (std::uint32_t k = 0; k < n % 3; ++k) expected[self] += k + 1;
    }
  EXPECT_TRUE(got == expected);
}

TEST_P(handlers, answer_diverged_lanes) {
  options o;
  for (o.threads = 1; o.threads <= 2; ++o.threads)
    expect_diverged_calls(where(), o, static_cast<std::uint32_t>(testing::scaled(40, 4)));
}

TEST_P(handlers, answer_diverged_lanes_in_every_schedule) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  options o;
  o.threads = 1;
  testing::for_seeds(
      10,
      [&] {
        o.threads = 3 - o.threads;
        expect_diverged_calls(where(), o, 2);
      },
      2);
}

}  // namespace
}  // namespace grosr::sys
