// drain() waits for all that was called, stop() refuses the rest, and a server ends in time
// whatever kernels do.
#include <fcntl.h>

#include <thread>

#include "support/errors.hpp"
#include "support/scale.hpp"
#include "support/scramble.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(drain);

using namespace std::chrono_literals;

struct ends {
  int fd[2] = {-1, -1};
  ends() { EXPECT_EQ(::pipe2(fd, O_CLOEXEC), 0); }
  ~ends() {
    ::close(fd[0]);
    ::close(fd[1]);
  }
  ends(const ends&) = delete;
};

struct drop_all {
  server_ref sys;
  int file;
  std::uint64_t turn;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.start();
    const std::uint64_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    const std::uint64_t what = self + turn;
    auto t = pwrite(c, file, &what, 8, static_cast<std::int64_t>(8 * self));
    drop(c, t);
  }
};

TEST_P(drain, waits_for_all_dropped_calls) {
  own_folder f;
  f.write("data", "");
  const int file = ::open(f.file("data").c_str(), O_RDWR | O_CLOEXEC);
  {
    server s(where(), options_for(f));
    s.grant(file);
    const auto turns = testing::scaled(50, 5);
    for (std::uint64_t turn = 0; turn < turns; ++turn) {
      run(2, 128, drop_all{s.ref(), file, turn});
      s.drain(60s);
      std::vector<std::uint64_t> got(256), expected(256);
      EXPECT_EQ(::pread(file, got.data(), 2048, 0), 2048);
      for (std::uint64_t i = 0; i < 256; ++i) expected[i] = i + turn;
      ASSERT_TRUE(got == expected) << turn;
    }
  }
  ::close(file);
}

struct read_once {
  server_ref sys;
  int file;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    char some[8];
    if (simt::thread_id() != 0) return;
    r[0] = sys::read(sys, file, some, 8);
    r[1] = sys::read(sys, file, some, 8);
    r[2] = nothing(sys);
    r[3] = print(sys, "too late\n");
  }
};

void wait_until_one_waits(const server& s) {
  for (int i = 0; i < 10000 && s.statistics().waited == 0; ++i) std::this_thread::sleep_for(1ms);
}

TEST_P(drain, ends_with_its_limit_and_stop_ends_calls_that_wait) {
  ends pipe;
  own_folder f;
  options o = options_for(f);
  ends printed;
  o.print_to = printed.fd[1];
  server s(where(), o);
  s.grant(pipe.fd[0]);
  auto r = make<std::int64_t>(4);
  simt::stream stream(where());
  simt::launch(stream, {1, 32}, read_once{s.ref(), pipe.fd[0], r.data()});
  wait_until_one_waits(s);
  // Each of them, not only the first.
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(testing::error_of([&] { s.drain(50ms); }).code(), errc::timed_out) << i;
  // Two at a time: nobody waits longer for the other than its own limit.
  std::thread other([&] { s.drain(60s); });
  std::this_thread::sleep_for(10ms);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(testing::error_of([&] { s.drain(50ms); }).code(), errc::timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
  s.stop();
  stream.wait();
  other.join();
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{-ESHUTDOWN, -ESHUTDOWN, -ESHUTDOWN, 0}));
  s.drain(60s);
}

TEST_P(drain, waits_for_a_call_until_its_peer_answers) {
  ends pipe;
  own_folder f;
  server s(where(), options_for(f));
  s.grant(pipe.fd[0]);
  auto r = make<std::int64_t>(4);
  simt::stream stream(where());
  simt::launch(stream, {1, 32}, read_once{s.ref(), pipe.fd[0], r.data()});
  wait_until_one_waits(s);
  EXPECT_EQ(testing::error_of([&] { s.drain(20ms); }).code(), errc::timed_out);
  EXPECT_EQ(::write(pipe.fd[1], "12345678", 8), 8);
  EXPECT_EQ(::write(pipe.fd[1], "1234", 4), 4);
  stream.wait();
  s.drain(60s);
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{8, 4, 0, 0}));
}

struct call_for_ever {
  server_ref sys;
  std::uint32_t* began;  // pinned
  GROSR_DEVICE void operator()() const {
    while (nothing(sys) != -ESHUTDOWN)
      simt::atomic_ref<std::uint32_t, simt::scope::system>(*began).store(1, simt::relaxed);
  }
};

TEST_P(drain, of_the_destructor_ends_while_kernels_call) {
  auto began = make<std::uint32_t>(1, simt::space::pinned);
  simt::stream stream(where());
  const auto before = std::chrono::steady_clock::now();
  {
    options o;
    o.threads = 2;
    o.exit_patience = 500ms;
    server s(where(), o);
    simt::launch(stream, {2, 64}, call_for_ever{s.ref(), began.data()});
    while (std::atomic_ref(began[0]).load() == 0) std::this_thread::sleep_for(1ms);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, 10s);
  stream.wait();
}

struct call_some {
  server_ref sys;
  GROSR_DEVICE void operator()() const {
    for (int i = 0; i < 3; ++i) nothing(sys);
    sys::syscall(sys, 100000L);
    print(sys, "{}", simt::thread_id());
  }
};

TEST_P(drain, leaves_statistics_that_add_up_in_many_servers) {
  ends printed;
  const auto servers = testing::scaled(where().is_cuda() ? 5 : 30, 3);
  for (std::uint64_t i = 0; i < servers; ++i) {
    options o;
    o.threads = 1 + static_cast<unsigned>(i % 3);
    o.print_to = printed.fd[1];
    if (i % 2 == 0) o.chunks = {32, 32, 32};
    server s(where(), o);
    run(1, 64, call_some{s.ref()});
    s.drain(60s);
    std::uint64_t nothings = 0, others = 0, prints = 0, errors = 0;
    for (const auto& c : s.statistics().calls) {
      (c.name == "nothing" ? nothings : c.name == "print" ? prints : others) += c.calls;
      errors += c.errors;
      std::uint64_t by_latency = 0;
      for (std::uint64_t n : c.latency) by_latency += n;
      EXPECT_EQ(by_latency, c.calls) << c.name;
      EXPECT_LE(c.within_ns(0.5), c.within_ns(0.99));
      EXPECT_GT(c.within_ns(0.01), 0);
    }
    EXPECT_EQ(nothings, 3 * 64u);
    EXPECT_EQ(prints, 64u);
    EXPECT_EQ(others, 64u);
    EXPECT_EQ(errors, 64u);
    char text[4096];
    EXPECT_EQ(::read(printed.fd[0], text, sizeof text), 10 + 54 * 2);
  }
}

}  // namespace
}  // namespace grosr::sys
