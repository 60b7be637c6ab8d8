// While calls wait for a slow disk others are made, descriptors are closed, and a server drains,
// stops and ends as it would without them. The disk is a pipe that brings bytes when it is told to.
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "support/errors.hpp"
#include "sys/calls.hpp"
#include "sys/disk_calls.hpp"

namespace grosr::sys {
namespace {

using namespace std::chrono_literals;

// Reads of 3 bytes wait for the disk, where a ring or a thread then makes them; shorter ones are
// cached.
std::atomic<int> disk_reads{-1};

long slowly(long number, std::uint64_t* a) {
  const bool on_disk = static_cast<int>(a[0]) == disk_reads;
  if (number == SYS_preadv2 && on_disk) return -EAGAIN;
  if (number != SYS_pread64 || a[2] < 3) return 0;
  if (on_disk) return ::read(disk_reads, reinterpret_cast<void*>(a[1]), a[2]);
  a[0] = static_cast<std::uint64_t>(disk_reads.load());
  return 0;
}

struct read_slowly {
  server_ref sys;
  int file;  // -1: one that the lane opens
  std::int64_t* results;
  std::uint32_t readers = 1;
  GROSR_DEVICE void operator()() const {
    char to[3] = {};
    const std::uint32_t self = simt::thread_id();
    if (self >= readers) return;
    const int from = file >= 0 ? file : static_cast<int>(open(sys, "data", O_RDONLY));
    results[self] = pread(sys, from, to, 3, 0);
  }
};

struct close_one {
  server_ref sys;
  int file;
  std::int64_t* results;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0 || file < 0) return;
    char to[3];
    results[0] = close(sys, file);
    results[1] = pread(sys, file, to, 3, 0);
    results[2] = close(sys, file);
  }
};

struct read_quickly {
  server_ref sys;
  int file;
  std::int64_t* result;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0 || file < 0) return;
    char to[2];
    long sum = 0;
    for (int i = 0; i < 10; ++i) sum += pread(sys, file, to, 2, i);
    *result = sum;
  }
};

class slow_calls : public testing::device_test {
 protected:
  void SetUp() override {
    device_test::SetUp();
    if (IsSkipped()) return;
    folder.write("data", std::string(100, 'd'));
    file = ::open(folder.file("data").c_str(), O_RDONLY | O_CLOEXEC);
    disk_reads = disk.reads();
    results = make<std::int64_t>(512);
    quick = make<std::int64_t>(3);
    // Kernels that are not loaded yet are not while another one runs.
    run(1, 32, close_one{server_ref(nullptr), -1, nullptr});
    run(1, 32, read_quickly{server_ref(nullptr), -1, nullptr});
  }
  void TearDown() override {
    if (file >= 0) ::close(file);
  }
  options asked(bool io_uring = true) const {
    options o = options_for(folder);
    o.threads = 1;
    o.io_uring = io_uring;
    return o;
  }
  static void wait_until(const server& s, std::uint64_t wait) {
    for (int i = 0; i < 20000 && s.statistics().waited < wait; ++i)
      std::this_thread::sleep_for(1ms);
    ASSERT_GE(s.statistics().waited, wait);
  }
  own_folder folder;
  slow_disk disk;
  int file = -1;
  simt::buffer<std::int64_t> results, quick;
  const while_faulty here{slowly};
};

INSTANTIATE_TEST_SUITE_P(on, slow_calls, ::testing::Values("host:0", "cuda:0"),
                         testing::device_test_name);

TEST_P(slow_calls, hold_up_nobody) {
  for (bool io_uring : {true, false}) {
    server s(where(), asked(io_uring));
    s.grant(file);
    simt::stream stream(where());
    simt::launch(stream, {1, 32}, read_slowly{s.ref(), file, results.data()});
    wait_until(s, 1);
    simt::stream other(where());
    simt::launch(other, {1, 32}, read_quickly{s.ref(), file, quick.data()});
    other.wait();
    EXPECT_EQ(contents(quick)[0], 20);
    EXPECT_EQ(testing::error_of([&] { s.drain(50ms); }).code(), errc::timed_out);
    disk.brings(3);
    stream.wait();
    s.drain(60s);
    EXPECT_EQ(contents(results)[0], 3);
    const statistics told = s.statistics();
    EXPECT_EQ(told.by_ring, io_uring && is_ring_here() ? 1u : 0u);
    for (const call_statistics& c : told.calls)
      if (c.name == "pread64") {
        EXPECT_EQ(c.calls, 11u);
        EXPECT_EQ(c.bytes, 23u);
        EXPECT_GE(c.seconds, 0.05);  // as long as drain() waited
      }
  }
}

TEST_P(slow_calls, keep_their_descriptor_while_it_is_closed) {
  for (bool io_uring : {true, false}) {
    server s(where(), asked(io_uring));
    simt::stream stream(where());
    simt::launch(stream, {1, 32}, read_slowly{s.ref(), -1, results.data()});
    wait_until(s, 1);
    const int opened = [&] {  // the file, as the process has it
      for (int fd = 0; fd < 1024; ++fd) {
        char name[64], to[512] = {};
        std::snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        if (::readlink(name, to, sizeof to - 1) > 0 && folder.file("data") == to && fd != file)
          return fd;
      }
      return -1;
    }();
    ASSERT_GE(opened, 0);
    simt::stream other(where());
    simt::launch(other, {1, 32}, close_one{s.ref(), opened, quick.data()});
    other.wait();
    EXPECT_EQ(contents(quick), (std::vector<std::int64_t>{0, -EBADF, -EBADF}));
    EXPECT_GE(::fcntl(opened, F_GETFD), 0);  // the read has it still
    disk.brings(3);
    stream.wait();
    s.drain(60s);
    EXPECT_EQ(contents(results)[0], 3);
    EXPECT_LT(::fcntl(opened, F_GETFD), 0);
  }
}

TEST_P(slow_calls, are_finished_when_a_server_stops) {
  for (bool io_uring : {true, false}) {
    server s(where(), asked(io_uring));
    s.grant(file);
    simt::stream stream(where());
    simt::launch(stream, {1, 32}, read_slowly{s.ref(), file, results.data()});
    wait_until(s, 1);
    std::this_thread::sleep_for(100ms);  // it begins
    std::atomic<bool> stopped{false};
    std::thread stops([&] { s.stop(), stopped = true; });
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(stopped);
    disk.brings(3);
    stops.join();
    stream.wait();
    EXPECT_EQ(contents(results)[0], 3);
    run(1, 32, read_slowly{s.ref(), file, results.data()});
    EXPECT_EQ(contents(results)[0], -ESHUTDOWN);
  }
}

TEST_P(slow_calls, are_finished_when_a_server_ends) {
  for (bool io_uring : {true, false}) {
    simt::stream stream(where());
    std::thread brings;
    {
      server s(where(), asked(io_uring));
      s.grant(file);
      simt::launch(stream, {1, 32}, read_slowly{s.ref(), file, results.data(), 2});
      wait_until(s, 2);
      brings = std::thread([this] {
        std::this_thread::sleep_for(50ms);
        disk.brings(6);
      });
    }
    brings.join();
    stream.wait();
    EXPECT_EQ(contents(results)[0], 3);
    EXPECT_EQ(contents(results)[1], 3);
  }
}

TEST_P(slow_calls, are_more_than_a_ring_holds) {
  if (!is_ring_here()) GTEST_SKIP() << "no io_uring here";
  server s(where(), asked());
  s.grant(file);
  simt::stream stream(where());
  simt::launch(stream, {1, 416}, read_slowly{s.ref(), file, results.data(), 400});
  wait_until(s, 400);
  disk.brings(3 * 400);
  stream.wait();
  EXPECT_EQ(s.statistics().by_ring, 400u);
  const auto r = contents(results);
  EXPECT_EQ(std::count(r.begin(), r.begin() + 400, 3), 400);
}

// Another may wait for what this one is to do: it gets no place in a queue behind it.
TEST_P(slow_calls, are_made_at_once_when_there_is_no_ring_and_no_thread) {
  options o = asked(false);
  o.blocking_threads = 1;
  o.threads = 2;
  server s(where(), o);
  s.grant(file);
  simt::stream stream(where()), other(where());
  simt::launch(stream, {1, 32}, read_slowly{s.ref(), file, results.data()});
  wait_until(s, 1);
  simt::launch(other, {1, 32}, read_slowly{s.ref(), file, quick.data()});
  wait_until(s, 2);
  disk.brings(6);
  stream.wait();
  other.wait();
  EXPECT_EQ(contents(results)[0], 3);
  EXPECT_EQ(contents(quick)[0], 3);
}

}  // namespace
}  // namespace grosr::sys
