// Opening a FIFO waits for nobody, whatever the policy; reading it waits for its other end.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>

#include <thread>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(fifos);

using namespace std::chrono_literals;

/// Paths as the policy takes them, in pinned memory.
struct paths {
  char read[64], other[64];
  open_how how;
};

struct open_all_ways {
  server_ref sys;
  paths* p;
  bool raw;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    char some[8] = {};
    const int file = static_cast<int>(open(sys, p->read, O_RDONLY));
    r[0] = file >= 0;
    r[1] = open(sys, p->other, O_WRONLY);
    r[2] = syscall(sys, SYS_creat, p->other, 0600);
    r[3] = raw ? syscall(sys, SYS_openat2, AT_FDCWD, p->other, &p->how, sizeof p->how) : -ENXIO;
    r[4] = sys::read(sys, file, some, 8);  // until the host writes
    r[5] = some[0] == 'f' && some[3] == 'r';
    r[6] = sys::read(sys, file, some, 8);  // the host has closed it
    r[7] = close(sys, file);
    const int quiet = static_cast<int>(open(sys, p->other, O_RDONLY | O_NONBLOCK));
    r[8] = sys::read(sys, quiet, some, 8);
    if (raw) r[9] = syscall(sys, SYS_fcntl, open(sys, p->other, O_RDONLY), F_GETFL) & O_NONBLOCK;
  }
};

void expect_opens_do_not_wait(device d, bool raw) {
  own_folder f;
  for (const char* name : {"read", "other"}) ASSERT_EQ(::mkfifo(f.file(name).c_str(), 0600), 0);
  simt::buffer<paths> p(d, simt::space::pinned, 1);
  p[0] = {};
  f.file("read").copy(p[0].read, 63);
  f.file("other").copy(p[0].other, 63);
  p[0].how.flags = O_WRONLY;
  options o = options_for(f);
  o.threads = 1;
  o.policy.raw = raw;
  if (raw) o.policy.folders.clear();
  simt::buffer<std::int64_t> r(d, simt::space::device, 10);
  simt::stream stream(d);
  server s(d, o);
  s.share(std::as_writable_bytes(std::span(p.data(), 1)));
  simt::launch(stream, {1, 32}, open_all_ways{s.ref(), p.data(), raw, r.data()});
  for (int i = 0; i < 10'000 && s.statistics().waited == 0; ++i) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(s.statistics().waited, 1u);
  const auto open_both_ends = [&](const char* name) {
    return ::open(f.file(name).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  };
  const int writer = open_both_ends("read");
  EXPECT_EQ(::write(writer, "four", 4), 4);
  for (int i = 0; i < 10'000 && s.statistics().waited < 2 && !stream.done(); ++i)
    std::this_thread::sleep_for(1ms);  // until it waits for more
  ::close(writer);
  for (int i = 0; i < 10'000 && !stream.done(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_TRUE(stream.done());
  const int rescue = stream.done() ? -1 : open_both_ends("other");
  stream.wait();
  if (rescue >= 0) ::close(rescue);
  std::vector<std::int64_t> got(10);
  r.copy_to(got);
  EXPECT_EQ(got, (std::vector<std::int64_t>{1, -ENXIO, -ENXIO, -ENXIO, 4, 1, 0, 0, 0, 0}));
}

TEST_P(fifos, are_opened_at_once_below_folders) { expect_opens_do_not_wait(where(), false); }
TEST_P(fifos, are_opened_at_once_under_a_raw_policy) { expect_opens_do_not_wait(where(), true); }

}  // namespace
}  // namespace grosr::sys
