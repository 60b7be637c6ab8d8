// What ends a wait never stands behind what waits: an unlock, a wake-up, a post come through
// however many calls wait, and stop() and close() end them all.
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <functional>
#include <thread>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(releases);

using namespace std::chrono_literals;

constexpr unsigned lanes = 32, pool = 4;

/// What the lanes of a test share with the host, in pinned memory.
struct board {
  std::int32_t word = 0;       ///< a futex
  std::int32_t other = 0;      ///< another one
  std::uint32_t held = 0;      ///< a lane holds what the others wait for
  std::uint32_t released = 0;  ///< by the host: the holder goes on
  struct ::flock range {};
  sembuf down{0, -1, 0}, up{0, 1, 0};
  struct {
    long kind = 1;
    char text[8] = "hello";
  } letter;
  iovec part{};
  msghdr message{};
  char bytes[64] = {};
};

options raw_options() {
  options o;
  o.threads = 2;
  o.blocking_threads = pool;
  o.policy.raw = true;
  return o;
}

GROSR_DEVICE std::uint32_t load(std::uint32_t& flag) {
  return simt::atomic_ref<std::uint32_t, simt::scope::system>(flag).load(simt::acquire);
}
GROSR_DEVICE void store(std::uint32_t& flag, std::uint32_t value) {
  simt::atomic_ref<std::uint32_t, simt::scope::system>(flag).store(value, simt::release);
}
GROSR_DEVICE void wait_for(std::uint32_t& flag) {
  simt::wait_until([&] { return load(flag) != 0; }, simt::forever, nullptr, "the test's host");
}

bool ends_within(const simt::stream& s, std::chrono::seconds limit) {
  for (const auto end = std::chrono::steady_clock::now() + limit;
       std::chrono::steady_clock::now() < end; std::this_thread::sleep_for(1ms))
    if (s.done()) return true;
  return s.done();
}

/// Lets the holder go on when the others wait, and all of them end. False: they hung, and `rescue`
/// had to end them.
bool ends_when_released(server& s, const simt::stream& stream, board& b, unsigned waiting,
                        const std::function<void()>& rescue) {
  for (int i = 0; i < 10'000 && s.statistics().waited < waiting; ++i)
    std::this_thread::sleep_for(1ms);
  EXPECT_GE(s.statistics().waited, waiting);
  std::this_thread::sleep_for(50ms);  // until those that got a thread are in Linux; either is right
  std::atomic_ref(b.released).store(1);
  if (ends_within(stream, 20s)) return true;
  rescue();
  return false;
}

// ---- locks

/// Lane 0 has the lock and gives it back; the others want it, each with a descriptor of its own.
struct lock_file {
  server_ref sys;
  const char* path;  // device memory
  board* b;
  bool ranges;
  std::int64_t* r;
  GROSR_DEVICE long lock(int file, short how) const {
    if (!ranges) return syscall(sys, SYS_flock, file, how == F_UNLCK ? LOCK_UN : LOCK_EX);
    return syscall(sys, SYS_fcntl, file, how == F_UNLCK ? F_OFD_SETLK : F_OFD_SETLKW,
                   how == F_UNLCK ? &b[1].range : &b[0].range);
  }
  GROSR_DEVICE void operator()() const {
    const unsigned self = simt::thread_id();
    const int file = static_cast<int>(open(sys, path, O_RDWR));
    if (self == 0) {
      r[0] = lock(file, F_WRLCK);
      store(b->held, 1);
      wait_for(b->released);
    } else {
      wait_for(b->held);
      r[self] = lock(file, F_WRLCK);
    }
    if (lock(file, F_UNLCK) != 0) r[self] = -1000;
    close(sys, file);
  }
};

void expect_locks_are_passed_on(device d, bool ranges) {
  own_folder f;
  f.write("lock", "");
  options o = ranges ? raw_options() : options_for(f);
  o.blocking_threads = pool;
  simt::buffer<board> b(d, simt::space::pinned, 2);
  b[0] = b[1] = board{};
  for (int i : {0, 1}) {
    b[static_cast<std::size_t>(i)].range.l_type = i == 0 ? F_WRLCK : F_UNLCK;
    b[static_cast<std::size_t>(i)].range.l_whence = SEEK_SET;
  }
  const std::string name = ranges ? f.file("lock") : "lock";
  simt::buffer<char> path(d, simt::space::device, name.size() + 1);
  path.copy_from(std::vector<char>(name.c_str(), name.c_str() + name.size() + 1));
  simt::buffer<std::int64_t> r(d, simt::space::device, lanes);
  simt::stream stream(d);
  server s(d, o);
  simt::launch(stream, {1, lanes}, lock_file{s.ref(), path.data(), b.data(), ranges, r.data()});
  EXPECT_TRUE(ends_when_released(s, stream, b[0], lanes - 1, [&] { s.stop(); }));
  stream.wait();
  std::vector<std::int64_t> got(lanes);
  r.copy_to(got);
  EXPECT_EQ(got, std::vector<std::int64_t>(lanes));
}

TEST_P(releases, flock_is_passed_on) { expect_locks_are_passed_on(where(), false); }
TEST_P(releases, locks_of_ranges_are_passed_on) { expect_locks_are_passed_on(where(), true); }

// ---- futexes

struct wait_for_word {
  server_ref sys;
  board* b;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const unsigned self = simt::thread_id();
    if (self != 0) {
      // As everywhere: a wait may end for no reason, and the word says whether it may go on.
      while (load(reinterpret_cast<std::uint32_t&>(b->word)) == 0) {
        const long got = syscall(sys, SYS_futex, &b->word, FUTEX_WAIT, 0, 0);
        if (got != 0 && got != -EAGAIN && got != -EINTR) {
          r[self] = got;
          return;
        }
      }
      return;
    }
    wait_for(b->released);
    // This one does not wait at all, and may not be held up by those that do.
    r[0] = syscall(sys, SYS_futex, &b->other, FUTEX_WAIT, 1, 0) == -EAGAIN ? 0 : 1;
    store(reinterpret_cast<std::uint32_t&>(b->word), 1);
    syscall(sys, SYS_futex, &b->word, FUTEX_WAKE, 1000000);
  }
};

TEST_P(releases, futexes_wake_all) {
  auto b = make<board>(1, simt::space::pinned);
  b[0] = board{};
  auto r = make<std::int64_t>(lanes);
  simt::stream stream(where());
  server s(where(), raw_options());
  simt::launch(stream, {1, lanes}, wait_for_word{s.ref(), b.data(), r.data()});
  const auto wake = [&] { ::syscall(SYS_futex, &b[0].word, FUTEX_WAKE, 1000000, 0, 0, 0); };
  EXPECT_TRUE(ends_when_released(s, stream, b[0], lanes - 1, [&] {
    std::atomic_ref(b[0].word).store(1);
    while (!s.statistics().waited || !stream.done()) wake();
  }));
  stream.wait();
  EXPECT_EQ(contents(r), std::vector<std::int64_t>(lanes));
}

// ---- System V

struct post_and_wait {
  server_ref sys;
  board* b;
  int semaphores, letters;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const unsigned self = simt::thread_id();
    if (self != 0) {
      if (self % 2 != 0)
        r[self] = syscall(sys, SYS_semop, semaphores, &b->down, 1);
      else
        r[self] = syscall(sys, SYS_msgrcv, letters, b[self].bytes, 8, 0, 0) - 8;
      return;
    }
    wait_for(b->released);
    for (unsigned i = 1; i < lanes; ++i)
      r[0] += i % 2 != 0 ? syscall(sys, SYS_semop, semaphores, &b->up, 1)
                         : syscall(sys, SYS_msgsnd, letters, &b->letter, 8, 0);
  }
};

/// A set of one semaphore and a queue of messages, gone with their owner.
struct system_v {
  int semaphores = ::semget(IPC_PRIVATE, 1, 0600), letters = ::msgget(IPC_PRIVATE, 0600);
  system_v() = default;
  ~system_v() { remove(); }
  system_v(const system_v&) = delete;
  void remove() const {
    ::semctl(semaphores, 0, IPC_RMID);
    ::msgctl(letters, IPC_RMID, nullptr);
  }
};

TEST_P(releases, semaphores_and_messages_are_passed_on) {
  const system_v ipc;
  if (ipc.semaphores < 0 || ipc.letters < 0) GTEST_SKIP() << "no System V IPC here";
  auto b = make<board>(lanes, simt::space::pinned);
  for (unsigned i = 0; i < lanes; ++i) b[i] = board{};
  auto r = make<std::int64_t>(lanes);
  simt::stream stream(where());
  server s(where(), raw_options());
  simt::launch(stream, {1, lanes},
               post_and_wait{s.ref(), b.data(), ipc.semaphores, ipc.letters, r.data()});
  EXPECT_TRUE(ends_when_released(s, stream, b[0], lanes - 1, [&] { ipc.remove(); }));
  stream.wait();
  EXPECT_EQ(contents(r), std::vector<std::int64_t>(lanes));
}

// ---- stop() and close()

struct wait_in_all_ways {
  server_ref sys;
  board* b;
  int semaphores, letters, pipe, socket;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    switch (simt::thread_id()) {
      case 0:
        r[0] = syscall(sys, SYS_futex, &b->word, FUTEX_WAIT, 0, 0);
        return;
      case 1:
        r[1] = syscall(sys, SYS_semop, semaphores, &b->down, 1);
        return;
      case 2:
        r[2] = syscall(sys, SYS_msgrcv, letters, b->bytes, 8, 0, 0);
        return;
      case 3:
        r[3] = syscall(sys, SYS_readv, pipe, &b->part, 1);
        return;
      case 4:
        r[4] = syscall(sys, SYS_recvmsg, socket, &b->message, 0);
        return;
      case 5:
        r[5] = syscall(sys, SYS_futex, &b->word, FUTEX_WAIT, 0, 0);  // beyond the pool
        return;
      default:
        return;
    }
  }
};

struct descriptor_pair {
  int fd[2] = {-1, -1};
  explicit descriptor_pair(bool sockets) {
    EXPECT_EQ(
        sockets ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) : ::pipe2(fd, O_CLOEXEC),
        0);
  }
  ~descriptor_pair() {
    ::close(fd[0]);
    ::close(fd[1]);
  }
  descriptor_pair(const descriptor_pair&) = delete;
};

TEST_P(releases, stop_ends_every_wait) {
  const system_v ipc;
  if (ipc.semaphores < 0 || ipc.letters < 0) GTEST_SKIP() << "no System V IPC here";
  const descriptor_pair pipe(false), sockets(true);
  auto b = make<board>(1, simt::space::pinned);
  b[0] = board{};
  b[0].part = {b[0].bytes, 8};
  b[0].message.msg_iov = &b[0].part;
  b[0].message.msg_iovlen = 1;
  auto r = make<std::int64_t>(lanes);
  simt::stream stream(where());
  server s(where(), raw_options());
  s.grant(pipe.fd[0]);
  s.grant(sockets.fd[0]);
  simt::launch(stream, {1, lanes},
               wait_in_all_ways{s.ref(), b.data(), ipc.semaphores, ipc.letters, pipe.fd[0],
                                sockets.fd[0], r.data()});
  for (int i = 0; i < 10'000 && s.statistics().waited < 6; ++i) std::this_thread::sleep_for(1ms);
  std::atomic<bool> stopped{false};
  std::thread stops([&] {
    s.stop();
    stopped = true;
  });
  for (int i = 0; i < 10'000 && !stopped; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(stopped);
  while (!stopped) {  // by hand
    std::atomic_ref(b[0].word).store(1);
    ::syscall(SYS_futex, &b[0].word, FUTEX_WAKE, 1000000, 0, 0, 0);
    ipc.remove();
    EXPECT_EQ(::write(pipe.fd[1], "x", 1), 1);
    EXPECT_EQ(::write(sockets.fd[1], "x", 1), 1);
    std::this_thread::sleep_for(10ms);
  }
  stops.join();
  stream.wait();
  std::vector<std::int64_t> expected(lanes);
  std::fill_n(expected.begin(), 6, -ESHUTDOWN);
  EXPECT_EQ(contents(r), expected);
}

struct close_what_waits {
  server_ref sys;
  board* b;
  int pipe, socket;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) r[0] = syscall(sys, SYS_readv, pipe, &b->part, 1);
    if (simt::thread_id() == 1) r[1] = syscall(sys, SYS_recvmsg, socket, &b->message, 0);
    if (simt::thread_id() != 2) return;
    wait_for(b->released);
    r[2] = close(sys, pipe);
  }
};

TEST_P(releases, close_ends_a_wait_on_a_thread_and_a_message_ends_its_own) {
  const descriptor_pair pipe(false), sockets(true);
  auto b = make<board>(1, simt::space::pinned);
  b[0] = board{};
  b[0].part = {b[0].bytes, 8};
  b[0].message.msg_iov = &b[0].part;
  b[0].message.msg_iovlen = 1;
  auto r = make<std::int64_t>(lanes);
  simt::stream stream(where());
  server s(where(), raw_options());
  s.grant(pipe.fd[0]);
  s.grant(sockets.fd[0]);
  simt::launch(stream, {1, lanes},
               close_what_waits{s.ref(), b.data(), pipe.fd[0], sockets.fd[0], r.data()});
  for (int i = 0; i < 10'000 && s.statistics().waited < 2; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(::write(sockets.fd[1], "message", 7), 7);
  std::atomic_ref(b[0].released).store(1);
  EXPECT_TRUE(ends_within(stream, 20s));
  EXPECT_EQ(::write(pipe.fd[1], "x", 1), 1);
  EXPECT_TRUE(ends_within(stream, 10s));
  s.stop();
  stream.wait();
  std::vector<std::int64_t> expected(lanes);
  expected[0] = -EBADF;
  expected[1] = 7;
  EXPECT_EQ(contents(r), expected);
}

}  // namespace
}  // namespace grosr::sys
