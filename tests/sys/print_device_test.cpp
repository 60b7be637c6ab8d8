// What kernels print is written whole, in the order of lanes, and nothing is lost: whatever the
// format says, however slow the reader is, and whatever becomes of the kernel.
#include <fcntl.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "support/scale.hpp"
#include "support/seeds.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(printing);

/// A pipe, and a thread that reads it to its end.
class reader {
 public:
  explicit reader(std::chrono::milliseconds pause = {}) {
    EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0);
    thread_ = std::thread([this, pause] {
      char some[4096];
      for (;;) {
        std::this_thread::sleep_for(pause);
        const ssize_t n = ::read(ends_[0], some, sizeof some);
        if (n <= 0) return;
        text_.append(some, static_cast<std::size_t>(n));
      }
    });
  }
  ~reader() { text(); }
  reader(const reader&) = delete;

  int to() const { return ends_[1]; }

  /// All that was written; once, when nobody writes any more.
  const std::string& text() {
    if (thread_.joinable()) {
      ::close(ends_[1]);
      thread_.join();
      ::close(ends_[0]);
    }
    return text_;
  }

 private:
  int ends_[2] = {-1, -1};
  std::string text_;
  std::thread thread_;
};

options printing_to(const reader& r, bool use_arena = true) {
  options o;
  o.threads = 2;
  o.print_to = r.to();
  o.use_arena = use_arena;
  return o;
}

std::string printed_by(device d, const auto& kernel_of, unsigned blocks, unsigned threads,
                       bool use_arena = true) {
  reader r;
  {
    server s(d, printing_to(r, use_arena));
    simt::run(d, {blocks, threads}, kernel_of(s.ref()));
  }
  return r.text();
}

struct many_lines {
  server_ref sys;
  std::uint32_t lines;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < lines; ++i) {
      simt::sync_warp();  // lanes that call together print in their order
      sys::print(sys, "{} {} {} {}\n", simt::warp_id(), i, simt::lane_id(), "and more");
    }
  }
};

/// All lines are there and whole, and those of a warp's call are in the order of lanes.
void expect_in_order(const std::string& text, std::uint32_t warps, std::uint32_t lines) {
  std::vector<std::uint32_t> next_lane(warps * lines);  // by warp and line
  std::vector<std::uint32_t> next_line(warps * 32);     // by warp and lane
  std::uint32_t seen = 0;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1, ++seen) {
    end = text.find('\n', at);
    ASSERT_NE(end, std::string::npos);
    unsigned warp = 0, line = 0, lane = 0;
    int used = 0;
    const std::string one = text.substr(at, end - at);
    ASSERT_EQ(std::sscanf(one.c_str(), "%u %u %u and more%n", &warp, &line, &lane, &used), 3)
        << one;
    ASSERT_EQ(static_cast<std::size_t>(used), one.size()) << one;
    ASSERT_LT(warp, warps);
    ASSERT_LT(line, lines);
    ASSERT_EQ(next_lane[warp * lines + line]++, lane) << one;
    ASSERT_EQ(next_line[warp * 32 + lane]++, line) << one;
  }
  EXPECT_EQ(seen, warps * lines * 32);
}

TEST_P(printing, is_complete_and_in_the_order_of_lanes) {
  const auto kernel = [](server_ref s) { return many_lines{s, 100}; };
  expect_in_order(printed_by(where(), kernel, 1, 64), 2, 100);
}

TEST_P(printing, waits_for_a_slow_reader) {
  reader r(std::chrono::milliseconds(5));
  const auto lines = static_cast<std::uint32_t>(testing::scaled(200, 20));
  {
    server s(where(), printing_to(r));
    run(1, 128, many_lines{s.ref(), lines});
    s.drain(std::chrono::seconds(60));
  }
  expect_in_order(r.text(), 4, lines);
}

TEST_P(printing, counts_what_nobody_reads) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  options o;
  o.threads = 2;
  o.print_to = ends[1];
  o.exit_patience = std::chrono::milliseconds(200);
  const auto began = std::chrono::steady_clock::now();
  {
    server s(where(), o);
    run(1, 32, many_lines{s.ref(), 300});  // more than a pipe holds
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  ::close(ends[0]);  // and now there is no reader at all
  {
    server s(where(), o);
    run(1, 32, many_lines{s.ref(), 1});
    s.drain(std::chrono::seconds(10));
    EXPECT_GT(s.statistics().unwritten, 0u);
  }
  ::close(ends[1]);
}

struct print_and_call {
  server_ref sys;
  std::uint32_t lines;
  const char* ten;  // kilobytes
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    if (simt::block_id() == 0)
      for (std::uint32_t i = 0; i < lines; ++i) r[0] += sys::print(sys, "{}\n", ten);
    else
      for (int i = 0; i < 100; ++i) r[1] += sys::syscall(sys, SYS_getppid) > 0;
  }
};

// Nobody reads: the server's one thread goes on making calls.
TEST_P(printing, does_not_hold_up_a_service_thread) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  std::string ten(10000, 't');
  auto at_ten = make<char>(ten.size() + 1);
  at_ten.copy_from({ten.c_str(), ten.size() + 1});
  auto r = make<std::int64_t>(2);
  options o;
  o.threads = 1;
  o.print_to = ends[1];
  o.exit_patience = std::chrono::milliseconds(200);
  {
    server s(where(), o);
    run(2, 32, print_and_call{s.ref(), 100, at_ten.data(), r.data()});
    EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 100}));
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_P(printing, waits_in_its_shard_when_too_much_is_unread) {
  // More than waits in host memory; then somebody reads.
  std::string ten(10000, 't');
  auto at_ten = make<char>(ten.size() + 1);
  at_ten.copy_from({ten.c_str(), ten.size() + 1});
  auto r = make<std::int64_t>(2);
  constexpr std::uint32_t lines = 2500;
  options o;
  o.threads = 1;
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  o.print_to = ends[1];
  std::uint64_t got = 0;
  std::thread late;
  {
    server s(where(), o);
    simt::stream stream(where());
    simt::launch(stream, {1, 32}, print_and_call{s.ref(), lines, at_ten.data(), r.data()});
    const auto is_stuck = [&] {
      try {
        s.drain(std::chrono::milliseconds(300));
      } catch (const error& e) {
        return e.code() == errc::timed_out;
      }
      return false;
    };
    for (int i = 0; !is_stuck(); ++i) {
      ASSERT_LT(i, 10000);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    late = std::thread([&] {
      std::vector<char> some(1 << 16);
      for (ssize_t n = 0; (n = ::read(ends[0], some.data(), some.size())) > 0;)
        got += static_cast<std::uint64_t>(n);
    });
    stream.wait();
    s.drain(std::chrono::seconds(60));
    EXPECT_EQ(s.statistics().unwritten, 0u);
  }
  ::close(ends[1]);
  late.join();
  ::close(ends[0]);
  EXPECT_EQ(got, lines * (ten.size() + 1));
  EXPECT_EQ(contents(r)[0], 0);
}

TEST_P(printing, is_complete_in_every_schedule) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  bool use_arena = false;
  testing::for_seeds(
      10,
      [&] {
        use_arena = !use_arena;
        const auto kernel = [](server_ref s) { return many_lines{s, 5}; };
        std::string text = printed_by(where(), kernel, 1, 64, use_arena);
        EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 64 * 5);
      },
      2);
}

enum class color : int { red = -3 };

struct all_kinds {
  server_ref sys;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const char* null = nullptr;
    char own[8] = "own";
    sys::print(sys, "{} {} {} {}\n", -1, 4000000000u, ~std::uint64_t{0}, std::int8_t{-7});
    sys::print(sys, "{} {} {:.3f} {}\n", 0.5f, -2.0, 3.14159, 1e300);
    sys::print(sys, "{}{} {} {}\n", 'a', 'b', true, false);
    sys::print(sys, "{} {}\n", reinterpret_cast<void*>(0x1234), static_cast<int>(color::red));
    sys::print(sys, "{} {} {} [{}]\n", "text", null, own, "");
    sys::print(sys, "{:>6}|{:<6}|{:^6}|{:06x}|{:#b}\n", "r", "l", "m", 255, 5u);
    sys::print(sys, "{1} {0} {{}}\n", 1, 2);
    sys::print(sys, "{}\n", color::red);
    sys::print(sys, "");
    sys::print(sys, "no arguments\n");
  }
};

TEST_P(printing, knows_all_kinds_of_arguments) {
  for (bool use_arena : {true, false})
    EXPECT_EQ(printed_by(
                  where(), [](server_ref s) { return all_kinds{s}; }, 1, 32, use_arena),
              "-1 4000000000 18446744073709551615 -7\n"
              "0.5 -2 3.142 1e+300\n"
              "ab true false\n"
              "0x1234 -3\n"
              "text (null) own []\n"
              "     r|l     |  m   |0000ff|0b101\n"
              "2 1 {}\n"
              "-3\n"
              "no arguments\n");
}

struct wrong_formats {
  server_ref sys;
  std::int64_t* null_format;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    sys::print(sys, "{");
    sys::print(sys, "{} {}", 1);
    sys::print(sys, "{:s}", 1);
    sys::print(sys, "}");
    sys::print(sys, "{:{}}", 1, -5);
    sys::print(sys, "%s\n", "unused");
    *null_format = sys::print(sys, nullptr);
    sys::print(sys, "the end\n");
  }
};

TEST_P(printing, says_which_format_is_wrong) {
  auto r = make<std::int64_t>(1);
  const std::string text = printed_by(
      where(),
      [&](server_ref s) {
        return wrong_formats{s, r.data()};
      },
      1, 32);
  EXPECT_EQ(contents(r)[0], -EFAULT);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7) << text;
  for (const char* format :
       {"{ [print: ", "{} {} [print: ", "{:s} [print: ", "} [print: ", "{:{}} [print: "})
    EXPECT_NE(text.find(format), std::string::npos) << text;
  EXPECT_NE(text.find("]\n%s\nthe end\n"), std::string::npos) << text;
}

struct long_texts {
  server_ref sys;
  const char *ten, *forty;  // kilobytes
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) {
      sys::print(sys, "{}{}{}{}\n", ten, ten, ten, ten);
      sys::print(sys, "{}\n", forty);
      sys::print(sys, forty);
      sys::print(sys, "\n");
      sys::print(sys, "{}{}{}{}\n", forty, forty, forty, forty);
    }
    sys::print(sys.warp(), "{}\n", ten);
  }
};

TEST_P(printing, takes_long_texts_and_cuts_longer_ones) {
  std::string ten(10000, 't'), forty(40000, 'f');
  for (std::size_t i = 0; i < ten.size(); i += 100) ten[i] = static_cast<char>('a' + i / 100 % 26);
  auto at_ten = make<char>(ten.size() + 1), at_forty = make<char>(forty.size() + 1);
  at_ten.copy_from({ten.c_str(), ten.size() + 1});
  at_forty.copy_from({forty.c_str(), forty.size() + 1});
  for (bool use_arena : {true, false}) {
    const std::string text = printed_by(
        where(),
        [&](server_ref s) {
          return long_texts{s, at_ten.data(), at_forty.data()};
        },
        1, 32, use_arena);
    const std::string cut(16384, 'f'), each((65536 - 4096) / 5, 'f');
    EXPECT_TRUE(text == ten + ten + ten + ten + "\n" + cut + "\n" + cut + "\n" + each + each +
                            each + each + "\n" + ten + "\n")
        << text.size();
  }
}

struct by_groups {
  server_ref sys;
  grid_point* points;
  GROSR_DEVICE void operator()() const {
    sys::print(sys.warp(0xffffu << simt::lane_id() / 16 * 16), "mask {}\n", simt::lane_id());
    sys::print(sys.block(), "block {}\n", simt::block_id());
    sys::print(sys.grid(sys::producer, points), "producer\n");
    sys::print(sys.grid(sys::consumer, points + 1), "consumer\n");
  }
};

TEST_P(printing, prints_one_text_a_group) {
  auto points = make<grid_point>(2);
  const std::string text = printed_by(
      where(),
      [&](server_ref s) {
        return by_groups{s, points.data()};
      },
      2, 64);
  const auto count = [&](const std::string& what) {
    std::size_t n = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  EXPECT_EQ(count("mask 0\n"), 4u);
  EXPECT_EQ(count("mask 16\n"), 4u);
  EXPECT_EQ(count("block 0\n"), 1u);
  EXPECT_EQ(count("block 1\n"), 1u);
  EXPECT_EQ(count("producer\n"), 1u);
  EXPECT_EQ(count("consumer\n"), 1u);
}

// Host backend: a kernel that ends with an exception, or is ended while it hangs.
struct say_and_throw {
  server_ref sys;
  GROSR_DEVICE void operator()() const {
    sys::print(sys, "lane {} was here\n", simt::thread_id());
    simt::sync_block();
#if !GROSR_ON_GPU
    if (simt::thread_id() == 17) throw std::runtime_error("lane 17 has had enough");
#endif
    for (unsigned turn = 0;; ++turn) simt::pause(turn, "the end of the world");
  }
};

TEST_P(printing, outlives_a_kernel_that_throws) {
  if (where().is_cuda()) GTEST_SKIP() << "exceptions are the host backend's";
  for (bool use_arena : {true, false}) {
    reader r;
    {
      server s(where(), printing_to(r, use_arena));
      EXPECT_THROW(simt::run(where(), {1, 64}, say_and_throw{s.ref()}), std::runtime_error);
    }
    const std::string& text = r.text();
    for (int i = 0; i < 64; ++i)
      EXPECT_NE(text.find("lane " + std::to_string(i) + " was here\n"), std::string::npos) << i;
  }
}

struct say_and_hang {
  server_ref sys;
  std::uint32_t* go_on;  // pinned
  GROSR_DEVICE void operator()() const {
    sys::print(sys, "lane {} was here\n", simt::thread_id());
    simt::atomic_ref<std::uint32_t, simt::scope::system> word(*go_on);
    simt::wait_until([&] { return word.load(simt::relaxed) != 0; }, simt::forever, nullptr,
                     "the test");
  }
};

TEST_P(printing, is_written_while_the_kernel_hangs) {
  reader r;
  auto go_on = make<std::uint32_t>(1, simt::space::pinned);
  server s(where(), printing_to(r));
  simt::stream stream(where());
  simt::launch(stream, {1, 64}, say_and_hang{s.ref(), go_on.data()});
  for (int i = 0; i < 10000; ++i) {
    const auto stats = s.statistics();
    if (!stats.calls.empty() && stats.calls[0].calls == 64) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  s.drain(std::chrono::seconds(10));
  const std::string text = r.text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 64);
  std::atomic_ref(go_on[0]).store(1);
  stream.wait();
}

}  // namespace
}  // namespace grosr::sys
