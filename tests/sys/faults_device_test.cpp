// When Linux makes part of a call, fails it, is interrupted or takes long, kernels are told so and
// nothing is lost.
#include <fcntl.h>
#include <time.h>

#include <atomic>
#include <thread>

#include "support/scale.hpp"
#include "support/scramble.hpp"
#include "support/seeds.hpp"
#include "sys/calls.hpp"
#include "sys/linux_result.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(faults);

std::atomic<std::uint32_t> turn{0}, interrupted{0}, shortened{0}, refused{0};

long make_trouble(long number, std::uint64_t* a) {
  const std::uint32_t n = testing::scramble(turn.fetch_add(1));
  if (n % 64 == 0) {
    const timespec some{0, static_cast<long>(n >> 8) % 300'000};
    ::nanosleep(&some, nullptr);
  }
  const bool moves =
      number == SYS_pread64 || number == SYS_pwrite64 || number == SYS_read || number == SYS_write;
  if (n % 5 == 0) return ++interrupted, -EINTR;
  if (moves && n % 5 == 1 && a[2] > 1) a[2] = 1 + (n >> 8) % a[2], ++shortened;
  if (moves && n % 20 == 2) return ++refused, -EAGAIN;
  if (number == SYS_pwrite64 && n % 20 == 7) return ++refused, -ENOSPC;
  return 0;
}

class trouble {
 public:
  trouble() { injected_fault = make_trouble; }
  ~trouble() { injected_fault = nullptr; }
};

struct move_all {
  server_ref sys;
  int file;
  const unsigned char* from;
  unsigned char* to;
  std::uint32_t bytes;
  std::uint32_t* wrong;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    move_one(sys, self);
    simt::sync_warp();
    move_one(sys.warp(), 256 + self / 32);
    move_one(sys.block(), 264 + simt::block_id());
  }
  template <class Caller>
  GROSR_DEVICE void move_one(const Caller& c, std::uint32_t part) const {
    const std::uint64_t begin = std::uint64_t{part} * bytes;
    move(bytes, [&](std::uint64_t at) {
      return pwrite(c, file, from + begin + at, bytes - at, static_cast<std::int64_t>(begin + at));
    });
    move(bytes, [&](std::uint64_t at) {
      return pread(c, file, to + begin + at, bytes - at, static_cast<std::int64_t>(begin + at));
    });
  }
  template <class Move>
  GROSR_DEVICE void move(std::uint64_t all, Move&& some) const {
    for (std::uint64_t moved = 0; moved < all;) {
      const long n = some(moved);
      if (n >= 0 && moved + static_cast<std::uint64_t>(n) <= all)
        moved += static_cast<std::uint64_t>(n);
      else if (n != -ENOSPC && n != -EAGAIN)
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    }
  }
};

void expect_all_moved(device d, unsigned threads, std::uint32_t bytes) {
  own_folder f;
  f.write("data", "");
  const int file = ::open(f.file("data").c_str(), O_RDWR | O_CLOEXEC);
  const std::size_t all = std::size_t{266} * bytes;
  std::vector<unsigned char> content(all), got(all);
  for (std::size_t i = 0; i < all; ++i)
    content[i] = static_cast<unsigned char>(testing::scramble(static_cast<std::uint32_t>(i)));
  simt::buffer<unsigned char> from(d, simt::space::device, all), to(d, simt::space::device, all);
  from.copy_from(content);
  simt::buffer<std::uint32_t> wrong(d, simt::space::device, 1);
  {
    options o = options_for(f);
    o.threads = threads;
    o.chunks = {64, 64, 32};
    server s(d, o);
    s.grant(file);
    const trouble while_this_lives;
    simt::run(d, {2, 128}, move_all{s.ref(), file, from.data(), to.data(), bytes, wrong.data()});
    s.drain(std::chrono::seconds(60));
  }
  std::uint32_t bad = 0;
  wrong.copy_to({&bad, 1});
  EXPECT_EQ(bad, 0u);
  to.copy_to(got);
  EXPECT_TRUE(got == content);
  const std::string written = f.read("data");
  EXPECT_TRUE(written.size() == all && std::equal(content.begin(), content.end(), written.begin(),
                                                  [](unsigned char a, char b) {
                                                    return a == static_cast<unsigned char>(b);
                                                  }));
  ::close(file);
}

TEST_P(faults, lose_nothing) {
  const auto times = testing::scaled(4);
  for (std::uint64_t i = 0; i < times; ++i)
    for (std::uint32_t bytes : {100u, 5000u})
      expect_all_moved(where(), 1 + static_cast<unsigned>(i % 2), bytes);
  expect_all_moved(where(), 2, 100000);
  EXPECT_GT(interrupted, 0u);
  EXPECT_GT(shortened, 0u);
  EXPECT_GT(refused, 0u);
}

TEST_P(faults, lose_nothing_in_every_schedule) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are the host backend's";
  unsigned threads = 1;
  testing::for_seeds(
      6, [&] { expect_all_moved(where(), threads = 3 - threads, 100); }, 2);
}

struct read_pipe {
  server_ref sys;
  int file;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    char some[4];
    *r = sys::read(sys, file, some, 4);
  }
};

TEST_P(faults, of_a_call_that_waits_are_told) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  auto r = make<std::int64_t>(1);
  own_folder f;
  server s(where(), options_for(f));
  s.grant(ends[0]);
  simt::stream stream(where());
  simt::launch(stream, {1, 32}, read_pipe{s.ref(), ends[0], r.data()});
  while (s.statistics().waited == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  static std::atomic<int> times;
  times = 0;
  injected_fault = [](long number, std::uint64_t*) -> long {
    if (number != SYS_read && number != SYS_preadv2) return 0;  // as Linux can do it
    return ++times < 5 ? -EINTR : -EIO;
  };
  EXPECT_EQ(::write(ends[1], "1234", 4), 4);
  stream.wait();
  injected_fault = nullptr;
  EXPECT_EQ(contents(r)[0], -EIO);
  EXPECT_EQ(times, 5);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace grosr::sys
