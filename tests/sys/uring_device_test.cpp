// Where a call waits for the disk makes no difference to what it gives: in a ring, on threads, or
// not at all since everything is in the page cache.
#include <fcntl.h>
#include <sys/uio.h>

#include <atomic>
#include <chrono>

#include "support/scale.hpp"
#include "support/scramble.hpp"
#include "sys/calls.hpp"
#include "sys/disk_calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(uring);

GROSR_DEVICE unsigned char byte_at(std::uint64_t i) {
  return static_cast<unsigned char>(testing::scramble(static_cast<std::uint32_t>(i)));
}

std::string sample(std::size_t n) {
  std::string s(n, 0);
  for (std::size_t i = 0; i < n; ++i) s[i] = static_cast<char>(byte_at(i));
  return s;
}

constexpr unsigned lanes = 64, results_of = 5;

// Each lane, each warp and the block read a part of one file, write it to another and sync it.
struct copy_parts {
  server_ref sys;
  int from, to;
  unsigned char* held;
  std::uint32_t bytes;
  std::int64_t* results;  // of a lane: results_of; then of the warps, of the block

  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::thread_id();
    copy(sys, self, true);
    simt::sync_warp();
    copy(sys.warp(), lanes + self / 32, simt::lane_id() == 0);
    copy(sys.block(), lanes + 2, self == 0);
  }
  template <class Caller>
  GROSR_DEVICE void copy(const Caller& c, std::uint32_t part, bool notes) const {
    const std::uint64_t at = std::uint64_t{part} * bytes;
    std::int64_t* r = results + results_of * part;
    const long got = pread(c, from, held + at, bytes, static_cast<std::int64_t>(at));
    const long put = pwrite(c, to, held + at, bytes, static_cast<std::int64_t>(at));
    const long synced = part % 2 != 0 ? fsync(c, to) : syscall(c, SYS_fdatasync, to);
    const long beyond = pread(c, from, held + at, bytes, 1 << 30);
    const long refused = pread(c, -1, held + at, bytes, 0);
    if (!notes) return;
    const long all[results_of] = {got, put, synced, beyond, refused};
    for (unsigned i = 0; i < results_of; ++i) r[i] = all[i];
  }
};

struct outcome {
  std::vector<std::int64_t> results;
  std::string written;
  std::uint64_t waited = 0, by_ring = 0;
  bool operator==(const outcome& o) const { return results == o.results && written == o.written; }
};

// The file ends within the block's part.
outcome copied(device d, std::uint32_t bytes, bool io_uring, fault f) {
  own_folder folder;
  const std::uint32_t parts = lanes + 3;
  const std::size_t all = std::size_t{parts} * bytes;
  folder.write("from", sample(all - bytes / 3));
  folder.write("to", "");
  const int from = ::open(folder.file("from").c_str(), O_RDONLY | O_CLOEXEC);
  const int to = ::open(folder.file("to").c_str(), O_WRONLY | O_DSYNC | O_CLOEXEC);
  simt::buffer<unsigned char> held(d, simt::space::device, all);
  held.copy_from(std::vector<unsigned char>(all));
  simt::buffer<std::int64_t> results(d, simt::space::device, parts * results_of);
  outcome o;
  {
    options asked = options_for(folder);
    asked.io_uring = io_uring;
    server s(d, asked);
    s.grant(from);
    s.grant(to);
    const while_faulty here(f);
    simt::run(d, {1, lanes}, copy_parts{s.ref(), from, to, held.data(), bytes, results.data()});
    s.drain(std::chrono::seconds(60));
    o.waited = s.statistics().waited;
    o.by_ring = s.statistics().by_ring;
  }
  o.results.resize(results.size());
  results.copy_to(o.results);
  o.written = folder.read("to");
  ::close(from);
  ::close(to);
  return o;
}

TEST_P(uring, on_or_off_gives_the_same) {
  for (std::uint32_t bytes : {100u, 5000u, 70000u}) {
    const outcome cached = copied(where(), bytes, true, nullptr);
    const outcome ring = copied(where(), bytes, true, nothing_cached);
    const outcome threads = copied(where(), bytes, false, nothing_cached);
    const outcome refused = copied(where(), bytes, true, nothing_cached_no_ring);
    EXPECT_TRUE(ring == cached) << bytes;
    EXPECT_TRUE(threads == cached) << bytes;
    EXPECT_TRUE(refused == cached) << bytes;
    EXPECT_EQ(cached.results[0], bytes);
    EXPECT_EQ(cached.results[results_of * (lanes + 2)], bytes - bytes / 3);
    for (unsigned i = 0; i < lanes + 3; ++i) {
      const auto* r = cached.results.data() + i * results_of;
      EXPECT_EQ(r[1], bytes);
      EXPECT_EQ(r[2], 0);
      EXPECT_EQ(r[3], 0);
      EXPECT_EQ(r[4], -EBADF);
    }
    const std::string expected = sample(cached.written.size() - bytes / 3);
    EXPECT_EQ(cached.written.compare(0, expected.size(), expected), 0);
    // Each part makes two reads, a write and a sync.
    EXPECT_GE(ring.waited, (lanes + 3) * 4u);
    EXPECT_EQ(ring.by_ring, is_ring_here() ? ring.waited : 0);
    EXPECT_EQ(threads.by_ring, 0u);
    EXPECT_EQ(refused.by_ring, 0u);
    EXPECT_LT(cached.waited, ring.waited);
  }
}

// What is cached comes at once, the rest from the ring; here a third of what is asked for.
std::atomic<unsigned> tries{0};

long a_third_is_cached(long number, std::uint64_t* a) {
  if (number != SYS_preadv2) return 0;
  if (++tries % 2 == 0) return -EAGAIN;
  auto* to = reinterpret_cast<iovec*>(a[1]);
  to->iov_len = (to->iov_len + 2) / 3;
  return 0;
}

TEST_P(uring, brings_what_is_not_cached_of_a_read) {
  for (std::uint32_t bytes : {1u, 100u, 5000u, 60000u})
    for (bool io_uring : {true, false})
      EXPECT_TRUE(copied(where(), bytes, io_uring, a_third_is_cached) ==
                  copied(where(), bytes, io_uring, nullptr))
          << bytes;
}

// A file system that does not say what is cached is believed, and not asked again.
TEST_P(uring, is_not_used_for_files_that_cannot_be_tried) {
  const outcome o = copied(where(), 100, true, [](long number, std::uint64_t*) -> long {
    if (number != SYS_preadv2) return 0;
    ++tries;
    return -EOPNOTSUPP;
  });
  tries = 0;
  const outcome again = copied(where(), 100, true, [](long number, std::uint64_t*) -> long {
    return number == SYS_preadv2 ? ++tries, -EOPNOTSUPP : 0;
  });
  EXPECT_LE(tries, 2u);  // at most one a service thread
  EXPECT_GE(tries, 1u);
  const outcome cached = copied(where(), 100, true, nullptr);
  EXPECT_TRUE(o == cached);
  EXPECT_TRUE(again == cached);
  EXPECT_EQ(again.waited, (lanes + 3) * 2u);  // writes and syncs
}

// One lane reads the file's first 8 bytes again and again.
struct read_often {
  server_ref sys;
  int file, times;
  std::int64_t* wrong;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned char to[8];
    for (int i = 0; i < times; ++i) {
      const bool right = pread(sys, file, to, 8, 0) == 8 && to[7] == byte_at(7);
      if (!right) ++*wrong;
    }
  }
};

std::atomic<bool> is_slow{false};

TEST_P(uring, is_not_thought_of_while_all_is_cached) {
  own_folder folder;
  folder.write("data", sample(8));
  const int file = ::open(folder.file("data").c_str(), O_RDONLY | O_CLOEXEC);
  auto wrong = make<std::int64_t>(1);
  wrong.copy_from(std::vector<std::int64_t>{0});
  {
    options o = options_for(folder);
    o.threads = 1;
    server s(where(), o);
    s.grant(file);
    const while_faulty here([](long number, std::uint64_t*) -> long {
      if (number == SYS_preadv2) ++tries;
      if (is_slow && number == SYS_pread64) ::usleep(1000);
      return 0;
    });
    const auto tries_of = [&](int times) {
      tries = 0;
      run(1, 32, read_often{s.ref(), file, times, wrong.data()});
      return tries.load();
    };
    is_slow = true;
    tries_of(2);
    is_slow = false;
    EXPECT_GE(tries_of(100), 100u);
    tries_of(5000);  // now and then one is slow by chance
    // Up to one without any: after a slow one the thread asks for 256 reads, and may be among them.
    // Beside much else many are slow, because the thread has no processor for a while.
    unsigned last = 100;
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (last != 0 && std::chrono::steady_clock::now() < until) last = tries_of(100);
    EXPECT_EQ(last, 0u);
    is_slow = true;
    EXPECT_GE(tries_of(3), 1u);
    is_slow = false;
    EXPECT_GE(tries_of(100), 90u);
  }
  EXPECT_EQ(contents(wrong)[0], 0);
  ::close(file);
}

std::atomic<std::uint32_t> turn{0}, interrupted{0}, shortened{0}, refused{0};

long make_trouble(long number, std::uint64_t* a) {
  if (number == SYS_io_uring_setup) return 0;
  const std::uint32_t n = testing::scramble(turn.fetch_add(1));
  if (n % 5 == 0) return ++interrupted, -EINTR;
  if (number == SYS_preadv2) return n % 2 == 0 ? -EAGAIN : 0;
  const bool moves = number == SYS_pread64 || number == SYS_pwrite64;
  if (moves && n % 5 == 1 && a[2] > 1) a[2] = 1 + (n >> 8) % a[2], ++shortened;
  if (n % 20 == 2) return ++refused, -EAGAIN;
  if (number == SYS_pwrite64 && n % 20 == 7) return ++refused, -ENOSPC;
  if (number == SYS_fsync && n % 20 == 12) return ++refused, -EIO;
  return 0;
}

// Every lane moves its part until all of it has been moved.
struct move_all {
  server_ref sys;
  int from, to;
  unsigned char* held;
  std::uint32_t bytes;
  std::uint32_t* wrong;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    const std::uint64_t begin = std::uint64_t{self} * bytes;
    move([&](std::uint64_t at) {
      return pread(sys, from, held + begin + at, bytes - at, static_cast<std::int64_t>(begin + at));
    });
    move([&](std::uint64_t at) {
      return pwrite(sys, to, held + begin + at, bytes - at, static_cast<std::int64_t>(begin + at));
    });
    for (long r = -EIO; r != 0;) {
      r = fsync(sys, to);
      if (r != 0 && r != -EIO && r != -EAGAIN) count_wrong();
    }
  }
  template <class Move>
  GROSR_DEVICE void move(Move&& some) const {
    for (std::uint64_t moved = 0; moved < bytes;) {
      const long n = some(moved);
      if (n > 0 && moved + static_cast<std::uint64_t>(n) <= bytes)
        moved += static_cast<std::uint64_t>(n);
      else if (n != -ENOSPC && n != -EAGAIN)
        count_wrong();
    }
  }
  GROSR_DEVICE void count_wrong() const {
    simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
  }
};

void expect_all_moved(device d, bool io_uring, std::uint32_t bytes) {
  own_folder folder;
  const std::size_t all = std::size_t{128} * bytes;
  const std::string content = sample(all);
  folder.write("from", content);
  folder.write("to", "");
  const int from = ::open(folder.file("from").c_str(), O_RDONLY | O_CLOEXEC);
  const int to = ::open(folder.file("to").c_str(), O_WRONLY | O_SYNC | O_CLOEXEC);
  simt::buffer<unsigned char> held(d, simt::space::device, all);
  simt::buffer<std::uint32_t> wrong(d, simt::space::device, 1);
  {
    options o = options_for(folder);
    o.io_uring = io_uring;
    server s(d, o);
    s.grant(from);
    s.grant(to);
    const while_faulty here(make_trouble);
    simt::run(d, {2, 64}, move_all{s.ref(), from, to, held.data(), bytes, wrong.data()});
    s.drain(std::chrono::seconds(60));
    EXPECT_GT(s.statistics().waited, 0u);
    EXPECT_EQ(s.statistics().by_ring != 0, io_uring && is_ring_here());
  }
  std::uint32_t bad = 0;
  wrong.copy_to({&bad, 1});
  EXPECT_EQ(bad, 0u);
  EXPECT_TRUE(folder.read("to") == content) << bytes;
  ::close(from);
  ::close(to);
}

TEST_P(uring, loses_nothing_when_calls_fail) {
  for (std::uint64_t i = 0; i < testing::scaled(3); ++i)
    for (bool io_uring : {true, false})
      for (std::uint32_t bytes : {100u, 5000u}) expect_all_moved(where(), io_uring, bytes);
  EXPECT_GT(interrupted, 0u);
  EXPECT_GT(shortened, 0u);
  EXPECT_GT(refused, 0u);
}

}  // namespace
}  // namespace grosr::sys
