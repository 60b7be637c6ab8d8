// Calls in a ring end once each, with what the plain calls give, however many there are and
// whenever it is stopped.
#include <fcntl.h>

#include <chrono>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "support/scramble.hpp"
#include "sys/calls.hpp"
#include "sys/disk_calls.hpp"
#include "sys/waits.hpp"

namespace grosr::sys {
namespace {

using testing::comes_true;
using what = disk_call::what;

struct call : disk_call {
  call(what w, int file, void* at = nullptr, std::size_t many = 0, std::uint64_t from = 0) {
    makes = w;
    fd = file;
    memory = reinterpret_cast<std::uint64_t>(at);
    bytes = static_cast<std::uint32_t>(many);
    offset = from;
    done = [](disk_call& self, long r) {
      auto& c = static_cast<call&>(self);
      c.result = r;
      if (c.next) c.next();
      ++c.times;
    };
  }
  bool ends() const {
    return comes_true([this] { return times != 0; });
  }
  std::function<void()> next;
  long result = 1;
  std::atomic<int> times{0};
};

class uring : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!is_ring_here()) GTEST_SKIP() << "no io_uring here";
    folder.write("file", "0123456789");
    file = ::open(folder.file("file").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
  }
  void TearDown() override {
    if (file >= 0) ::close(file);
  }
  static long result_of(disk_ring& r, call& c) {
    EXPECT_EQ(r.submit(c), 0);
    EXPECT_TRUE(c.ends());
    EXPECT_EQ(c.times, 1);
    return c.result;
  }
  own_folder folder;
  int file = -1;
};

TEST_F(uring, gives_what_plain_calls_give) {
  disk_ring r;
  char to[16] = {};
  const int closed = 1'000'000;
  const int only_read = ::open(folder.file("file").c_str(), O_RDONLY | O_CLOEXEC);
  const auto give = [&](what w, int fd, std::size_t bytes, std::uint64_t offset) {
    call c(w, fd, to, bytes, offset);
    return result_of(r, c);
  };
  EXPECT_EQ(give(what::read, file, 4, 3), 4);
  EXPECT_EQ(std::string(to), "3456");
  EXPECT_EQ(give(what::read, file, 16, 8), 2);
  EXPECT_EQ(give(what::read, file, 16, 10), 0);
  EXPECT_EQ(give(what::read, file, 0, 0), 0);
  EXPECT_EQ(give(what::read, closed, 4, 0), -EBADF);
  EXPECT_EQ(give(what::write, only_read, 4, 0), -EBADF);
  EXPECT_EQ(give(what::write, file, 2, 12), 2);
  EXPECT_EQ(give(what::sync, file, 0, 0), 0);
  EXPECT_EQ(give(what::sync_data, file, 0, 0), 0);
  EXPECT_EQ(give(what::sync, closed, 0, 0), -EBADF);
  call unmapped(what::read, file, reinterpret_cast<void*>(64), 4);
  EXPECT_EQ(result_of(r, unmapped), -EFAULT);
  EXPECT_EQ(folder.read("file").size(), 14u);
  ::close(only_read);
}

TEST_F(uring, takes_more_calls_than_it_has_entries) {
  slow_disk disk;
  disk_ring r(true, 4);
  char to[41] = {};
  std::deque<call> calls;
  for (int i = 0; i < 41; ++i) calls.emplace_back(what::read, disk.reads(), to + i, 1);
  for (call& c : calls) ASSERT_EQ(r.submit(c), 0);
  EXPECT_EQ(r.waiting(), 41u);
  std::size_t ended = 0;
  for (std::size_t bytes : {1u, 2u, 38u}) {
    disk.brings(bytes);
    ended += bytes;
    EXPECT_TRUE(comes_true([&] { return r.waiting() == 41 - ended; })) << r.waiting();
  }
  for (call& c : calls) {
    EXPECT_EQ(c.times, 1);
    EXPECT_EQ(c.result, 1);
  }
  EXPECT_EQ(std::string(to, 41), std::string(41, 'x'));
}

TEST_F(uring, takes_calls_of_many_threads_and_of_ended_calls) {
  constexpr std::size_t threads = 4, each = 500, bytes = 64;
  std::string content(threads * each * bytes, 0);
  for (std::size_t i = 0; i < content.size(); ++i)
    content[i] = static_cast<char>(testing::scramble(static_cast<std::uint32_t>(i)));
  folder.write("many", content);
  const int many = ::open(folder.file("many").c_str(), O_RDONLY | O_CLOEXEC);
  disk_ring r(true, 16);
  std::string got(content.size(), 0);
  std::deque<call> calls;
  for (std::size_t i = 0; i < threads * each; ++i)
    calls.emplace_back(what::read, many, got.data() + i * bytes, bytes, i * bytes);
  // The end of the first call of a pair submits the second.
  for (std::size_t i = 0; i < threads * each; i += 2)
    calls[i].next = [&, i] { EXPECT_EQ(r.submit(calls[i + 1]), 0); };
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (std::size_t i = t * each; i < (t + 1) * each; i += 2) {
        if (i % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
        EXPECT_EQ(r.submit(calls[i]), 0);
      }
    });
  for (auto& t : all) t.join();
  EXPECT_TRUE(comes_true([&] { return r.waiting() == 0; })) << r.waiting();
  for (call& c : calls) {
    ASSERT_EQ(c.times, 1);
    ASSERT_EQ(c.result, static_cast<long>(bytes));
  }
  EXPECT_TRUE(got == content);
  ::close(many);
}

TEST_F(uring, is_stopped_when_calls_that_began_have_ended) {
  slow_disk disk;
  disk_ring r(true, 4);
  char to[8];
  call first(what::read, file, to, 1), last(what::read, file, to, 1);
  std::deque<call> calls;
  for (int i = 0; i < 8; ++i) calls.emplace_back(what::read, disk.reads(), to + i, 1);
  // These begin together, and when the last of them has ended the others have begun.
  first.next = [&] {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(r.submit(calls[i]), 0);
    EXPECT_EQ(r.submit(last), 0);
  };
  result_of(r, first);
  EXPECT_TRUE(last.ends());
  for (std::size_t i = 3; i < 8; ++i) ASSERT_EQ(r.submit(calls[i]), 0);
  std::atomic<int> stopped{0};
  std::thread a([&] { r.stop(), ++stopped; }), b([&] { r.stop(), ++stopped; });
  for (std::size_t i = 4; i < 8; ++i) {  // there was room for one more
    EXPECT_TRUE(calls[i].ends());
    EXPECT_EQ(calls[i].result, -ESHUTDOWN);
  }
  call late(what::read, file, to, 1);
  EXPECT_EQ(r.submit(late), -ESHUTDOWN);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(stopped, 0);
  disk.brings(4);
  a.join();
  b.join();
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(calls[i].times, 1);
    EXPECT_EQ(calls[i].result, 1);
  }
  EXPECT_EQ(calls[3].times, 1);
  EXPECT_EQ(r.waiting(), 0u);
}

TEST_F(uring, is_absent_when_it_is_not_allowed_or_linux_has_none) {
  char to;
  call c(what::read, file, &to, 1);
  disk_ring forbidden(false);
  EXPECT_EQ(forbidden.submit(c), -ENOSYS);
  forbidden.stop();
  EXPECT_EQ(forbidden.submit(c), -ESHUTDOWN);
  disk_ring refused;
  {
    const while_faulty here([](long number, std::uint64_t*) -> long {
      return number == SYS_io_uring_setup ? -EPERM : 0;
    });
    EXPECT_EQ(refused.submit(c), -ENOSYS);
  }
  EXPECT_EQ(refused.submit(c), -ENOSYS);  // it does not try again
  EXPECT_EQ(c.times, 0);
}

}  // namespace
}  // namespace grosr::sys
