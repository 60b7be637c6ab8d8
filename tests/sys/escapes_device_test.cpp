// What a fuzzer found: ways past the policy, descriptors that nobody counted, and calls that waited
// for ever.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include <cstring>
#include <thread>

#include "sys/calls.hpp"
#include "sys/open_files.hpp"
#include "sys/peers.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(escapes);

constexpr unsigned most = 24;

struct noted {
  std::int64_t* r;
  unsigned i = 0;
  GROSR_DEVICE void operator()(long result) { r[i++] = result; }
};

/// A page of the program's own, of which kernels know the address.
class own_page {
 public:
  own_page()
      : at_(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    std::memset(at_, 7, 4096);
  }
  ~own_page() { EXPECT_EQ(::munmap(at_, 4096), 0); }
  own_page(const own_page&) = delete;
  void* at() const { return at_; }

 private:
  void* at_;
};

struct change_memory {
  server_ref sys;
  void* page;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    note(syscall(sys, SYS_pkey_mprotect, page, 4096, PROT_NONE, -1));
    note(syscall(sys, SYS_mbind, page, 4096, 0, 0, 0, 0));
    note(syscall(sys, SYS_shmget, 0, 4096, 0600));
    note(syscall(sys, SYS_shmat, 0, page, SHM_REMAP));
    note(syscall(sys, SYS_shmdt, page));
    note(syscall(sys, SYS_mlockall, 1));
    note(syscall(sys, SYS_munlockall));
    note(syscall(sys, SYS_migrate_pages, 0, 0, 0, 0));
    note(syscall(sys, SYS_pkey_alloc, 0, 0));
    note(syscall(sys, SYS_io_destroy, page));
    const long own = mmap(sys, nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    note(syscall(sys, SYS_mprotect, own, 4096, PROT_READ | PROT_EXEC));
    note(syscall(sys, SYS_pkey_mprotect, own, 4096, PROT_EXEC, -1));
    note(syscall(sys, SYS_mprotect, own, 4096, PROT_READ | PROT_WRITE));
    note(munmap(sys, reinterpret_cast<void*>(own), 4096));
  }
};

TEST_P(escapes, memory_of_the_program_stays_as_it_is) {
  const own_page page;
  server s(where());
  auto r = make<std::int64_t>(most);
  run(1, 32, change_memory{s.ref(), page.at(), r.data()});
  const auto got = contents(r);
  for (int i = 0; i < 12; ++i) EXPECT_EQ(got[i], -EPERM) << i;
  EXPECT_EQ(got[12], 0);
  EXPECT_EQ(got[13], 0);
  EXPECT_EQ(static_cast<char*>(page.at())[4095], 7);
}

struct change_read_only {
  server_ref sys;
  const char* name;  // shared memory: "user.x"
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    const long file = open(sys, "in", O_RDONLY);
    note(file >= 0);
    note(syscall(sys, SYS_fchmod, file, 0777));
    note(syscall(sys, SYS_fchown, file, -1, -1));
    note(syscall(sys, SYS_fsetxattr, file, name, name, 4L, 0));
    note(syscall(sys, SYS_fremovexattr, file, name));
  }
};

TEST_P(escapes, files_that_may_only_be_read_stay_as_they_are) {
  own_folder f;
  f.write("in", "text");
  ASSERT_EQ(::chmod(f.file("in").c_str(), 0640), 0);
  options o = options_for(f);
  o.policy.folders[0].allowed = access::read;
  simt::buffer<char> name(where(), simt::space::pinned, 8);
  std::strcpy(name.data(), "user.x");
  server s(where(), o);
  s.share(std::as_writable_bytes(std::span(name.data(), 8)));
  auto r = make<std::int64_t>(most);
  run(1, 32, change_read_only{s.ref(), name.data(), r.data()});
  const auto got = contents(r);
  EXPECT_EQ(got[0], 1);
  for (int i = 1; i < 5; ++i) EXPECT_EQ(got[i], -EPERM) << i;
  EXPECT_EQ(std::filesystem::status(f.file("in")).permissions(),
            static_cast<std::filesystem::perms>(0640));
}

struct make_descriptors {
  server_ref sys;
  int* ends;  // shared memory
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    char some[4] = {};
    const long watch = syscall(sys, SYS_inotify_init1, 0);
    note(watch >= 0);
    note(close(sys, static_cast<int>(watch)));
    note(syscall(sys, SYS_inotify_init1, 0) >= 0);
    note(syscall(sys, SYS_pipe2, ends, 0));
    note(write(sys, ends[1], "four", 4));
    note(read(sys, ends[0], some, 4));
    note(some[0] == 'f' && some[3] == 'r');
    note(close(sys, ends[1]));
    note(read(sys, ends[0], some, 4));
    note(syscall(sys, SYS_pipe2, ends, 1));
    note(syscall(sys, SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, ends));
    note(syscall(sys, SYS_fanotify_init, 0, 0));
  }
};

TEST_P(escapes, descriptors_are_the_servers) {
  simt::buffer<int> ends(where(), simt::space::pinned, 2);
  { server first(where()); }
  const std::size_t before = open_files();
  {
    options o = networked();
    server s(where(), o);
    s.share(std::as_writable_bytes(std::span(ends.data(), 2)));
    auto r = make<std::int64_t>(12);
    run(1, 32, make_descriptors{s.ref(), ends.data(), r.data()});
    EXPECT_EQ(contents(r),
              (std::vector<std::int64_t>{1, 0, 1, 0, 4, 4, 1, 0, 0, -EINVAL, -EPERM, -EPERM}));
  }
  EXPECT_EQ(open_files(), before);
}

struct map_and_leave {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0)
      *r = mmap(sys, nullptr, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
};

TEST_P(escapes, what_kernels_mapped_goes_with_the_server) {
  auto r = make<std::int64_t>(1);
  unsigned char there[2];
  {
    server s(where());
    run(1, 32, map_and_leave{s.ref(), r.data()});
    ASSERT_EQ(::mincore(reinterpret_cast<void*>(contents(r)[0]), 8192, there), 0);
  }
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(contents(r)[0]), 8192, there), -1);
}

struct print_wide {
  server_ref sys;
  int width;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) print(sys, "{:{}}\n", 1, width);
  }
};

TEST_P(escapes, fields_are_not_as_wide_as_all_memory) {
  own_folder f;
  const int to = ::open(f.file("out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  {
    options o;
    o.print_to = to;
    o.use_arena = true;
    server s(where(), o);
    run(1, 32, print_wide{s.ref(), 0x7fffffff});
    run(1, 32, print_wide{s.ref(), 1000});
  }
  ::close(to);
  const std::string text = f.read("out");
  EXPECT_LT(text.size(), 1200u);
  EXPECT_NE(text.find("longer than 1 MiB"), text.npos);
  EXPECT_TRUE(text.ends_with("   1\n"));
}

enum class waits_for { processor_time, select, lock, fifo };

struct wait_for_ever {
  server_ref sys;
  waits_for what;
  timespec* hour;  // shared memory
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    if (what == waits_for::processor_time)
      note(syscall(sys, SYS_clock_nanosleep, CLOCK_PROCESS_CPUTIME_ID, 0, hour, 0));
    if (what == waits_for::select) note(syscall(sys, SYS_pselect6, 0, 0, 0, 0, 0, 0));
    if (what == waits_for::lock) {
      const long a = open(sys, "in", O_RDONLY), b = open(sys, "in", O_RDONLY);
      note(syscall(sys, SYS_flock, a, LOCK_EX));
      note(syscall(sys, SYS_flock, b, LOCK_EX));
    }
    if (what == waits_for::fifo) {
      const long a = open(sys, "fifo", O_RDONLY), b = open(sys, "fifo", O_WRONLY);
      char some[1];
      note(a >= 0 && b >= 0);
      note(read(sys, static_cast<int>(a), some, 1));
    }
  }
};

// A kernel that waits for what never comes, and a server that ends.
std::vector<std::int64_t> ended(device where, waits_for what) {
  own_folder f;
  f.write("in", "text");
  EXPECT_EQ(::mkfifo(f.file("fifo").c_str(), 0600), 0);
  options o = options_for(f);
  o.exit_patience = std::chrono::milliseconds(100);
  simt::buffer<timespec> hour(where, simt::space::pinned, 1);
  hour[0] = {3600, 0};
  simt::buffer<std::int64_t> r(where, simt::space::device, 2);
  simt::stream stream(where);
  const auto began = std::chrono::steady_clock::now();
  {
    server s(where, o);
    s.share(std::as_writable_bytes(std::span(hour.data(), 1)));
    simt::launch(stream, {1, 32}, wait_for_ever{s.ref(), what, hour.data(), r.data()});
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  stream.wait();
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  std::vector<std::int64_t> got(2);
  r.copy_to(got);
  return got;
}

TEST_P(escapes, nothing_waits_longer_than_the_server) {
  using both = std::vector<std::int64_t>;
  EXPECT_EQ(ended(where(), waits_for::processor_time), (both{-EOPNOTSUPP, 0}));
  EXPECT_EQ(ended(where(), waits_for::select), (both{-ESHUTDOWN, 0}));
  EXPECT_EQ(ended(where(), waits_for::lock), (both{0, -ESHUTDOWN}));
  EXPECT_EQ(ended(where(), waits_for::fifo), (both{1, -ESHUTDOWN}));
}

struct linger_long {
  server_ref sys;
  std::uint32_t port;
  const char* much;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    noted note{r};
    const int socket = static_cast<int>(sys::socket(sys, AF_INET, SOCK_STREAM));
    const sockaddr_in name = loopback(port);
    note(connect(sys, socket, &name, sizeof name));
    const linger hour{1, 3600};
    note(setsockopt(sys, socket, SOL_SOCKET, SO_LINGER, &hour, sizeof hour));
    while (send(sys, socket, much, 65536, MSG_DONTWAIT) > 0) {
    }
    const std::uint64_t before = simt::clock_ns();
    note(close(sys, socket));
    note(simt::clock_ns() - before < 10'000'000'000);
  }
};

TEST_P(escapes, close_waits_for_no_peer) {
  const peer silent(SOCK_STREAM, true);
  server s(where(), networked());
  auto much = make<char>(65536);
  auto r = make<std::int64_t>(4);
  run(1, 32, linger_long{s.ref(), silent.port(), much.data(), r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 0, 0, 1}));
}

// Made by callers that do not wait: the kernel ends, and they are under way.
struct print_until_refused {
  server_ref sys;
  std::uint32_t* printed;
  GROSR_DEVICE void operator()() const {
    std::uint32_t mine = 0;
    long alive = 0;
    do {
      alive = nothing(sys);
      if (print(sys, "x") == 0) ++mine;
    } while (alive != -ESHUTDOWN);
    simt::atomic_ref<std::uint32_t>(*printed).fetch_add(mine, simt::relaxed);
  }
};

TEST_P(escapes, text_that_is_printed_last_is_written) {
  auto printed = make<std::uint32_t>(1);
  simt::stream stream(where());
  own_folder f;
  const int to = ::open(f.file("out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  for (int i = 0; i < 10; ++i) {
    options o;
    o.threads = 2;
    o.use_arena = true;
    o.print_to = to;
    o.exit_patience = std::chrono::milliseconds(5);
    server s(where(), o);
    simt::launch(stream, {2, 64}, print_until_refused{s.ref(), printed.data()});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  stream.wait();
  ::close(to);
  EXPECT_EQ(std::filesystem::file_size(f.file("out")), contents(printed)[0]);
}

}  // namespace
}  // namespace grosr::sys
