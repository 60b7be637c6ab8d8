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
  int operator()(shade a, pair_of_words b, std::uintptr_t c, std::uint32_t d) const noexcept {
    *right += a == shade::dark && b.a == 7 && b.b == -8 &&
              c == reinterpret_cast<std::uintptr_t>(right) && d == 4000000000u;
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
  std::uintptr_t right;
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
  run(1, 32, call_all{s.ref(), reinterpret_cast<std::uintptr_t>(&right), r.data()});
  EXPECT_EQ(contents(r),
            (std::vector<std::int64_t>{-1000000000000, -5, 0, -ENOSPC, -EIO, -EIO, -EIO, -ENOSYS,
                                       std::int64_t{1} << 62, -4097, -4096, -4095, -4094, -4093}));
  EXPECT_EQ(right, 3);
  s.drain(std::chrono::seconds(10));
  EXPECT_EQ(s.statistics().thrown, 4u);
}

// What is carried.

struct add_up_words {
  static constexpr std::uint16_t number = 6;
  long operator()(long more, std::span<const std::uint32_t> words) const {
    for (std::uint32_t w : words) more += w;
    return more;
  }
};
struct fill_words {
  static constexpr std::uint16_t number = 7;
  static constexpr bool quick = true;
  long operator()(std::span<double> to, double first, std::span<const char> text) const {
    for (double& d : to) d = first++;
    return std::string(text.begin(), text.end()) == "text" ? static_cast<long>(to.size()) : -EIO;
  }
};
struct double_words {
  static constexpr std::uint16_t number = 8;
  long operator()(std::span<std::uint16_t> words, bool fails) const {
    for (std::uint16_t& w : words) w = static_cast<std::uint16_t>(2 * w);
    return fails ? -EIO : 0;
  }
};

struct carry {
  server_ref sys;
  std::uint32_t* words;  // 16384 of device memory for each block
  std::uint32_t* wrong;
  template <class Caller>
  GROSR_DEVICE void carry_all(const Caller& c, std::uint32_t* own, const double* filled_by_all,
                              double* fills) const {
    const char text[] = "text";
    std::uint16_t small[3] = {1, 2, 3};
    bool good = call<add_up_words>(c, 5L, sent(own, 100)) == 5 + 100 * 99 / 2;
    good = good && call<add_up_words>(c, 5L, sent(own, 0)) == 5;
    good = good && call<fill_words>(c, filled(fills, 33), 0.5, sent(text, 4)) == 33;
    good = good && filled_by_all[0] == 0.5 && filled_by_all[32] == 32.5;
    const bool each = Caller::group == granularity::lane;
    if (each) {
      good = good && call<double_words>(c, exchanged(small, 3), false) == 0;
      good = good && small[0] == 2 && small[1] == 4 && small[2] == 6;
      good = good && call<double_words>(c, exchanged(small, 3), true) == -EIO && small[2] == 6;
    }
    good = good && call<add_up_words>(c, 0L, sent(own, 16384)) == 16384L * 16383 / 2;
    good = good && call<add_up_words>(c, 0L, sent(own, 16385)) == -EMSGSIZE;
    good = good && call<add_up_words>(c, 0L, sent(own, ~std::size_t{0})) == -EMSGSIZE;
    good =
        good && call<add_up_words>(c, 0L, sent(static_cast<std::uint32_t*>(nullptr), 1)) == -EFAULT;
    auto t = call<add_up_words>(c.start(), 1L, sent(own, 10));
    good = good && wait(c.start(), t) == 46;
    if (!good) simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
  }
  GROSR_DEVICE void operator()() const {
    std::uint32_t* const own = words + std::size_t{simt::block_id()} * (16384 + 80);
    for (std::uint32_t i = simt::thread_id(); i < 16384; i += simt::block_size()) own[i] = i;
    simt::sync_block();
    auto* const to = reinterpret_cast<double*>(own + 16384);
    carry_all(sys.block(), own, to, to);
    simt::sync_block();
    if (simt::warp_id() == 0) carry_all(sys.warp(), own, to, to);
    simt::sync_warp();
    if (simt::thread_id() % 16 != 3) return;
    double mine[33];
    carry_all(sys, own, mine, mine);
  }
};

TEST_P(handlers, get_bytes_and_no_addresses) {
  for (const bool in_arena : {false, true}) {
    options o;
    o.use_arena = in_arena;
    server s(where(), o);
    s.install(add_up_words{});
    s.install(fill_words{});
    s.install(double_words{});
    auto words = make<std::uint32_t>(2 * (16384 + 80));
    auto wrong = make<std::uint32_t>(1);
    run(2, 64, carry{s.ref(), words.data(), wrong.data()});
    EXPECT_EQ(contents(wrong)[0], 0u) << in_arena;
  }
}

// While a handler takes its time, other calls are made: even the one that it waits for.
struct wait_for_other {
  static constexpr std::uint16_t number = 9;
  std::atomic<int>* begun;
  std::atomic<bool>* done;
  long operator()() const {
    ++*begun;
    for (int i = 0; i < 10'000 && !*done; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return *done;
  }
};
struct end_it {
  static constexpr std::uint16_t number = 10;
  std::atomic<int>* begun;
  std::atomic<bool>* done;
  long operator()() const {
    if (*begun < 4) return 0;
    *done = true;
    return 1;
  }
};

struct wait_and_end {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() < 4) {
      r[simt::thread_id()] = call<wait_for_other>(sys);
    } else if (simt::thread_id() == 4) {
      const int pid = static_cast<int>(syscall(sys, SYS_getpid));
      for (int i = 0; i < 10'000'000 && r[4] == 0; ++i) r[4] = call<end_it>(sys);
      if (syscall(sys, SYS_getpid) != pid) r[4] = -1;
    }
  }
};

TEST_P(handlers, that_take_their_time_hold_up_nobody) {
  options o;
  o.threads = 1;
  server s(where(), o);
  std::atomic<int> begun{0};
  std::atomic<bool> done{false};
  s.install(wait_for_other{&begun, &done});
  s.install(end_it{&begun, &done});
  auto r = make<std::int64_t>(5);
  run(1, 32, wait_and_end{s.ref(), r.data()});
  EXPECT_EQ(contents(r), std::vector<std::int64_t>(5, 1));
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
      // A lane that has seen the new handler never sees the old one again.
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
