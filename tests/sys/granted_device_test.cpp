// Descriptors of the program that block: no call of a kernel on them holds a service thread or the
// server's end.
#include <fcntl.h>
#include <sys/eventfd.h>

#include <thread>

#include "support/errors.hpp"
#include "support/scale.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(granted);

using namespace std::chrono_literals;

/// A pipe whose ends block.
class blocking_pipe {
 public:
  blocking_pipe() { EXPECT_EQ(::pipe2(ends_, O_CLOEXEC), 0); }
  ~blocking_pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  blocking_pipe(const blocking_pipe&) = delete;
  int operator[](int i) const { return ends_[i]; }

 private:
  int ends_[2];
};

struct write_and_forget {
  server_ref sys;
  int to;
  unsigned char* from;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.block().start();
    auto t = write(c, to, from, 60000);
    drop(c, t);
  }
};

TEST_P(granted, pipes_that_nobody_reads_do_not_hold_the_end) {
  const blocking_pipe p;
  const auto began = std::chrono::steady_clock::now();
  {
    options o;
    o.threads = 1;
    o.exit_patience = 200ms;
    server s(where(), o);
    s.grant(p[1]);
    auto from = make<unsigned char>(60000);
    run(3, 64, write_and_forget{s.ref(), p[1], from.data()});
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s * testing::slowdown);
}

struct write_all {
  server_ref sys;
  int to;
  unsigned char* from;
  std::int64_t* wrote;
  GROSR_DEVICE void operator()() const {
    const long n = write(sys.block(), to, from, 200000);
    if (simt::thread_id() == 0) *wrote = n;
  }
};

TEST_P(granted, pipes_take_all_that_is_written) {
  const blocking_pipe p;
  server s(where());
  s.grant(p[1]);
  auto from = make<unsigned char>(200000);
  auto wrote = make<std::int64_t>(1);
  std::size_t got = 0;
  std::thread reader([&] {
    char some[1000];
    while (got < 200000) {
      const ssize_t n = ::read(p[0], some, sizeof some);
      if (n <= 0) return;
      got += static_cast<std::size_t>(n);
    }
  });
  run(1, 64, write_all{s.ref(), p[1], from.data(), wrote.data()});
  reader.join();
  EXPECT_EQ(contents(wrote)[0], 200000);
  EXPECT_EQ(got, 200000u);
}

struct read_one {
  server_ref sys;
  int from;
  std::uint32_t* ends;  // how many read a byte; how many were refused
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    char some = 0;
    const long n = read(sys, from, &some, 1);
    simt::atomic_ref<std::uint32_t>(ends[n == 1            ? 0
                                         : n == -ESHUTDOWN ? 1
                                                           : 2])
        .fetch_add(1, simt::relaxed);
  }
};

TEST_P(granted, readers_of_one_byte_do_not_hold_threads) {
  const auto began = std::chrono::steady_clock::now();
  const unsigned rounds = where().is_cuda() ? 20 : testing::scaled(300, 3);  // servers take a while
  for (unsigned round = 0; round < rounds; ++round) {
    const blocking_pipe p;
    options o;
    o.threads = 2;
    server s(where(), o);
    s.grant(p[0]);
    auto ends = make<std::uint32_t>(3);
    std::thread writer([&] {
      EXPECT_EQ(::write(p[1], "x", 1), 1);
      std::this_thread::sleep_for(1ms);
      s.stop();
    });
    run(3, 32, read_one{s.ref(), p[0], ends.data()});
    writer.join();
    const auto found = contents(ends);
    EXPECT_LE(found[0], 1u);
    EXPECT_EQ(found[0] + found[1], 3u);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, 60s * testing::slowdown);
}

TEST_P(granted, again_while_in_use_they_stay_the_programs) {
  const blocking_pipe p;
  {
    options o;
    o.threads = 2;
    server s(where(), o);
    s.grant(p[0]);
    auto ends = make<std::uint32_t>(3);
    std::thread program([&] {
      std::this_thread::sleep_for(20ms);
      s.grant(p[0]);
      EXPECT_EQ(::write(p[1], "abc", 3), 3);
    });
    run(3, 32, read_one{s.ref(), p[0], ends.data()});
    program.join();
    EXPECT_EQ(contents(ends), (std::vector<std::uint32_t>{3, 0, 0}));
  }
  EXPECT_GE(::fcntl(p[0], F_GETFD), 0);
}

TEST_P(granted, what_is_not_open_is_refused_in_words) {
  server s(where());
  EXPECT_EQ(testing::error_of([&] { s.grant(-1); }).code(), errc::invalid_option);
  EXPECT_EQ(testing::error_of([&] { s.grant(1 << 20); }).code(), errc::invalid_option);
  EXPECT_EQ(testing::error_of([&] { s.grant(1000); }).code(), errc::invalid_option);
}

// Kernels' own, which they think block.
struct wait_for_own {
  server_ref sys;
  int* ends;  // shared memory
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    std::uint64_t value = 0;
    const auto later = sys.start();
    const int event = static_cast<int>(syscall(sys, SYS_eventfd2, 0, 0));
    auto first = read(later, event, &value, 8);
    auto second = read(later, event, &value, 8);  // as many as events, or one thread would wait
    const std::uint64_t one = 1;
    r[0] = write(sys, event, &one, 8);
    while (!test(later, first) && !test(later, second)) {
    }
    r[1] = test(later, first) && test(later, second);
    r[2] = write(sys, event, &one, 8);
    r[3] = wait(later, first);
    r[4] = wait(later, second);
    r[5] = syscall(sys, SYS_pipe2, ends, 0);
    const int copy = static_cast<int>(syscall(sys, SYS_dup, ends[0]));
    char some[4] = {};
    auto waits = read(later, copy, some, 4);
    r[6] = write(sys, ends[1], "ab", 2);
    r[7] = wait(later, waits);
  }
};

TEST_P(granted, own_events_and_copies_wait) {
  options o;
  o.threads = 1;
  server s(where(), o);
  simt::buffer<int> ends(where(), simt::space::pinned, 2);
  s.share(std::as_writable_bytes(std::span(ends.data(), 2)));
  auto r = make<std::int64_t>(8);
  run(1, 32, wait_for_own{s.ref(), ends.data(), r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{8, 0, 8, 8, 8, 0, 2, 2}));
}

// One descriptor at a time, each of which a call has waited on.
struct open_and_close {
  server_ref sys;
  std::uint32_t turns;
  std::int64_t* r;  // of the turn that went wrong: which, and how
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const auto later = sys.start();
    const std::uint64_t one = 1;
    GROSR_NO_UNROLL
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
      std::uint64_t value = 0;
      const int event = static_cast<int>(syscall(sys, SYS_eventfd2, 0, 0));
      auto waits = read(later, event, &value, 8);
      const long wrote = write(sys, event, &one, 8), waited = wait(later, waits);
      const long closed = close(sys, event);
      if (event >= 0 && wrote == 8 && waited == 8 && closed == 0) continue;
      r[0] = turn + 1;
      r[1] = event;
      return;
    }
  }
};

TEST_P(granted, what_kernels_close_is_closed_when_they_know) {
  options o;
  o.threads = 2;
  o.descriptors = 1;
  server s(where(), o);
  auto r = make<std::int64_t>(2);
  run(1, 32,
      open_and_close{s.ref(), static_cast<std::uint32_t>(testing::scaled(1000, 100)), r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 0}));
}

}  // namespace
}  // namespace grosr::sys
