// A call that waits holds all descriptors that it uses: their numbers are not other files' before
// it has ended.
#include <fcntl.h>

#include <cstring>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(descriptors_in_use);

/// The program opens a file of its own: the descriptor.
struct open_own {
  static constexpr std::uint16_t number = 0;
  const char* path;
  long operator()() const { return ::open(path, O_RDONLY | O_CLOEXEC); }
};

/// Returns when so many calls of the server wait.
struct until_they_wait {
  static constexpr std::uint16_t number = 1;
  const server* of;
  long operator()(std::uint32_t calls) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (of->statistics().waited < calls)
      if (std::chrono::steady_clock::now() > end) return -ETIMEDOUT;
    return 0;
  }
};

// The first one has the only thread for a while, the second one has not begun when its file is
// closed.
struct send_and_close {
  server_ref sys;
  int full[2], empty[2];  // pipes of the program
  unsigned char* bytes;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const auto later = sys.start();
    const int first = static_cast<int>(open(sys, "in", O_RDONLY));
    const int second = static_cast<int>(open(sys, "in", O_RDONLY));
    auto waits = syscall(later, SYS_sendfile, full[1], first, 0, 6);
    r[0] = call<until_they_wait>(sys, 1u);  // else the second one may be first
    auto queues = syscall(later, SYS_sendfile, empty[1], second, 0, 6);
    if (r[0] == 0) r[0] = call<until_they_wait>(sys, 2u);
    r[1] = close(sys, second);
    r[2] = call<open_own>(sys) != second;
    long left = 65536, n = 0;
    while (left > 0 && (n = read(sys, full[0], bytes, 4096)) > 0) left -= n;
    r[3] = wait(later, waits);
    r[4] = wait(later, queues);
    r[5] = read(sys, empty[0], bytes, 16);
  }
};

TEST_P(descriptors_in_use, by_a_call_that_waits_are_held) {
  own_folder f, program;
  f.write("in", "inside");
  program.write("own", "SECRET");
  const std::string path = program.file("own");
  send_and_close kernel{};
  for (int* ends : {kernel.full, kernel.empty}) ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const std::string much(65536, 'x');
  ASSERT_EQ(::write(kernel.full[1], much.data(), much.size()), 65536);
  auto r = make<std::int64_t>(6);
  auto bytes = make<unsigned char>(4096);
  {
    options o = options_for(f);
    o.blocking_threads = 1;
    server s(where(), o);
    for (const int fd : {kernel.full[0], kernel.full[1], kernel.empty[0], kernel.empty[1]})
      s.grant(fd);
    s.install(open_own{path.c_str()});
    s.install(until_they_wait{&s});
    kernel.sys = s.ref();
    kernel.bytes = bytes.data();
    kernel.r = r.data();
    run(1, 32, kernel);
  }
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{0, 0, 1, 6, 6, 6}));
  EXPECT_EQ(std::memcmp(contents(bytes).data(), "inside", 6), 0);
  for (const int* ends : {kernel.full, kernel.empty})
    for (int i = 0; i < 2; ++i) ::close(ends[i]);
}

}  // namespace
}  // namespace grosr::sys
