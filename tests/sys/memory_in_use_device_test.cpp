// What kernels unmap while calls use it is gone for them, and nothing of the program's comes to lie
// there before those calls have ended.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "support/scale.hpp"
#include "sys/calls.hpp"
#include "sys/disk_calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(memory_in_use);

/// The program maps a page of its own where kernels had one: 0, or -EEXIST, or what else mmap says.
struct take_page {
  static constexpr std::uint16_t number = 0;
  std::atomic<unsigned char*>* taken;
  long operator()(long at) const {
    void* const got = ::mmap(reinterpret_cast<void*>(at), 4096, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return -errno;
    std::memset(got, 7, 4096);
    *taken = static_cast<unsigned char*>(got);
    return 0;
  }
};

/// Returns when a call of the server waits.
struct until_one_waits {
  static constexpr std::uint16_t number = 1;
  const server* of;
  long operator()() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (of->statistics().waited == 0)
      if (std::chrono::steady_clock::now() > end) return -ETIMEDOUT;
    return 0;
  }
};

/// What became of the program's page: bytes in it that the program did not write.
long changed(unsigned char* page) {
  if (page == nullptr) return -1;
  const long n = std::count_if(page, page + 4096, [](unsigned char c) { return c != 7; });
  ::munmap(page, 4096);
  return n;
}

GROSR_DEVICE long map_page(server_ref sys) {
  return mmap(sys, nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// A read of nothing yet; then there is something.
struct read_and_unmap {
  server_ref sys;
  long number;
  int from, to;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const auto later = sys.start();
    const long at = map_page(sys);
    auto t = syscall(later, number, from, at, 4096, 0, 0, 0);
    r[0] = call<until_one_waits>(sys);
    r[1] = munmap(sys, reinterpret_cast<void*>(at), 4096);
    r[2] = munmap(sys, reinterpret_cast<void*>(at), 4096);
    r[3] = call<take_page>(sys, at);
    r[4] = write(sys, to, "secret", 6);
    r[5] = wait(later, t);
    char some[8] = {};
    r[6] = recv(sys, from, some, 8, MSG_DONTWAIT);
    r[7] = call<take_page>(sys, at);
  }
};

// A write to what is full; then somebody reads.
struct write_and_unmap {
  server_ref sys;
  long number;
  int from, to;
  unsigned char* bytes;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const auto later = sys.start();
    const long at = map_page(sys);
    long filled = 0, n = 0;
    while ((n = send(sys, to, bytes, 4096, MSG_DONTWAIT)) > 0) filled += n;
    auto t = syscall(later, number, to, at, 4096, 0, 0, 0);
    r[0] = call<until_one_waits>(sys);
    r[1] = munmap(sys, reinterpret_cast<void*>(at), 4096);
    r[2] = call<take_page>(sys, at);
    while (filled > 0 && (n = read(sys, from, bytes, 4096)) > 0) filled -= n;
    r[3] = filled;
    r[4] = wait(later, t);
    r[5] = recv(sys, from, bytes, 4096, MSG_DONTWAIT);
    r[6] = call<take_page>(sys, at);
  }
};

/// Two sockets of the program that block.
struct two_ends {
  two_ends() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0); }
  ~two_ends() {
    ::close(fd[0]);
    ::close(fd[1]);
  }
  two_ends(const two_ends&) = delete;
  int fd[2];
};

options usual() {
  options o;
  o.threads = 2;
  o.policy.network = true;
  o.use_arena = true;
  return o;
}

TEST_P(memory_in_use, by_a_read_that_waits_is_not_the_programs) {
  for (const long number : {SYS_read, SYS_recvfrom}) {
    const two_ends ends;
    std::atomic<unsigned char*> taken{nullptr};
    auto r = make<std::int64_t>(8);
    server s(where(), usual());
    s.grant(ends.fd[0]);
    s.grant(ends.fd[1]);
    s.install(take_page{&taken});
    s.install(until_one_waits{&s});
    run(1, 32, read_and_unmap{s.ref(), number, ends.fd[0], ends.fd[1], r.data()});
    EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 0, -EPERM, -EEXIST, 6, -EFAULT, 6, 0}));
    EXPECT_EQ(changed(taken), 0);
  }
}

TEST_P(memory_in_use, by_a_write_that_waits_is_not_the_programs) {
  for (const long number : {SYS_write, SYS_sendto}) {
    const two_ends ends;
    std::atomic<unsigned char*> taken{nullptr};
    auto r = make<std::int64_t>(7);
    auto bytes = make<unsigned char>(4096);
    server s(where(), usual());
    s.grant(ends.fd[0]);
    s.grant(ends.fd[1]);
    s.install(take_page{&taken});
    s.install(until_one_waits{&s});
    run(1, 32, write_and_unmap{s.ref(), number, ends.fd[0], ends.fd[1], bytes.data(), r.data()});
    EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 0, -EEXIST, 0, -EFAULT, -EAGAIN, 0}));
    EXPECT_EQ(changed(taken), 0);
  }
}

// A call on memory that was checked, and has not been made yet.
std::atomic<int> held_up{0};  // 1: a call is there; 2: it may go on
std::atomic<long> which{0};

long hold_up(long number, std::uint64_t*) {
  int none = 0;
  if (number != which || !held_up.compare_exchange_strong(none, 1)) return 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (held_up != 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  return 0;
}

struct let_go {
  static constexpr std::uint16_t number = 2;
  long operator()() const {
    held_up = 2;
    return 0;
  }
};

struct until_held_up {
  static constexpr std::uint16_t number = 3;
  long operator()() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (held_up != 1)
      if (std::chrono::steady_clock::now() > end) return -ETIMEDOUT;
    return 0;
  }
};

struct change_and_unmap {
  server_ref sys;
  long number;
  int a, b;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const auto later = sys.start();
    const long at = map_page(sys);
    auto t = a >= 0 ? syscall(later, number, a, at, 4096, 0) : syscall(later, number, at, 4096, b);
    r[0] = call<until_held_up>(sys);
    r[1] = munmap(sys, reinterpret_cast<void*>(at), 4096);
    r[2] = call<take_page>(sys, at);
    r[3] = call<let_go>(sys);
    const long result = wait(later, t);
    r[4] = result == 0 || result == -EFAULT;
    r[5] = call<take_page>(sys, at);
  }
};

TEST_P(memory_in_use, is_checked_and_changed_in_one_step) {
  own_folder f;
  f.write("in", std::string(4096, 'x'));
  const int file = ::open(f.file("in").c_str(), O_RDWR | O_CLOEXEC);
  struct {
    long number;
    int a, b;
  } const all[] = {{SYS_madvise, -1, MADV_DONTNEED},
                   {SYS_mprotect, -1, PROT_NONE},
                   {SYS_pread64, file, 0},
                   {SYS_pwrite64, file, 0}};
  for (const auto& [number, a, b] : all) {
    std::atomic<unsigned char*> taken{nullptr};
    auto r = make<std::int64_t>(6);
    options o = usual();
    o.threads = 3;
    server s(where(), o);
    s.coalesce(1, {});
    s.grant(file);
    s.install(take_page{&taken});
    s.install(let_go{});
    s.install(until_held_up{});
    held_up = 0;
    which = number;
    const while_faulty lives(hold_up);
    run(1, 32, change_and_unmap{s.ref(), number, a, b, r.data()});
    EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 0, -EEXIST, 0, 1, 0})) << number;
    unsigned char there = 0;
    ASSERT_EQ(::mincore(taken, 4096, &there), 0);
    EXPECT_EQ(::mprotect(taken, 4096, PROT_READ | PROT_WRITE), 0);
    EXPECT_EQ(changed(taken), 0) << number;
  }
  EXPECT_EQ(f.read("in"), std::string(4096, 'x'));
  ::close(file);
}

// Lanes map, use and unmap, and the program maps and looks at what it has.
struct churn {
  server_ref sys;
  std::uint32_t turns;
  const int* ends;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    const auto later = sys.start();
    for (std::uint32_t i = 0; i < turns; ++i) {
      const long at = map_page(sys);
      auto t = syscall(later, SYS_read, ends[0], at, 64);
      auto advice = madvise(later, reinterpret_cast<void*>(at), 4096, MADV_DONTNEED);
      const long gone = munmap(sys, reinterpret_cast<void*>(at), 4096);
      const long wrote = write(sys, ends[1], "four", 4);
      wait(later, advice);
      const long n = wait(later, t);
      if (gone != 0 || wrote != 4 || (n < 0 && n != -EFAULT && n != -EAGAIN))
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    }
  }
};

TEST_P(memory_in_use, by_many_never_becomes_the_programs) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  simt::buffer<int> known(where(), simt::space::pinned, 2);
  std::copy_n(ends, 2, known.data());
  auto wrong = make<std::uint32_t>(1);
  std::atomic<bool> ended{false};
  std::atomic<long> bad{0};
  {
    server s(where(), usual());
    s.grant(ends[0]);
    s.grant(ends[1]);
    std::thread program([&] {
      while (!ended) {
        unsigned char* pages[8];
        for (auto& page : pages) {
          void* const at =
              ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          page = static_cast<unsigned char*>(at);
          std::memset(page, 7, 4096);
        }
        for (auto* page : pages) bad += changed(page);
      }
    });
    run(2, 32,
        churn{s.ref(), static_cast<std::uint32_t>(testing::scaled(200, 20)), known.data(),
              wrong.data()});
    ended = true;
    program.join();
  }
  EXPECT_EQ(contents(wrong)[0], 0u);
  EXPECT_EQ(bad, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace grosr::sys
