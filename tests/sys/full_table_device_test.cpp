// A call that would make one descriptor too many does nothing else either.
#include <fcntl.h>
#include <sys/socket.h>

#include "sys/peers.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(full_table);

struct make_too_many {
  server_ref sys;
  int listens;
  int* ends;  // shared memory
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    const long first = open(sys, "in", O_RDONLY);
    r[i++] = syscall(sys, SYS_pipe2, ends, 0);
    const long last = open(sys, "in", O_RDONLY);
    r[i++] = first >= 0 && last >= 0;
    r[i++] = open(sys, "in", O_WRONLY | O_TRUNC);
    r[i++] = open(sys, "new", O_WRONLY | O_CREAT, 0600);
    r[i++] = accept(sys, listens);
    r[i++] = syscall(sys, SYS_dup, first);
    r[i++] = syscall(sys, SYS_memfd_create, ends, 0);
    r[i++] = syscall(sys, SYS_memfd_create, ends, 0xffff);  // needs none
    r[i++] = syscall(sys, SYS_eventfd2, 0, 0x40000000);
    r[i++] = socket(sys, AF_INET, SOCK_STREAM);
    r[i++] = syscall(sys, SYS_pipe2, ends, 0);
    r[i++] = close(sys, static_cast<int>(first));
    r[i++] = syscall(sys, SYS_pipe2, ends, 0);
    r[i++] = accept(sys, listens) >= 0;
    r[i++] = open(sys, "new", O_WRONLY | O_CREAT, 0600);
  }
};

TEST_P(full_table, leaves_files_and_connections_as_they_are) {
  own_folder f;
  f.write("in", "text");
  const peer listener(SOCK_STREAM, true), other(SOCK_STREAM);
  other.connect_to(listener.port());
  simt::buffer<int> ends(where(), simt::space::pinned, 2);
  options o = options_for(f);
  o.policy.network = true;
  o.descriptors = 2;
  server s(where(), o);
  s.grant(listener.fd());
  s.share(std::as_writable_bytes(std::span(ends.data(), 2)));
  auto r = make<std::int64_t>(15);
  run(1, 32, make_too_many{s.ref(), listener.fd(), ends.data(), r.data()});
  constexpr std::int64_t none = -EMFILE;
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{none, 1, none, none, none, none, none, -EINVAL,
                                                    -EINVAL, none, none, 0, none, 1, none}));
  EXPECT_EQ(f.read("in"), "text");
  EXPECT_FALSE(std::filesystem::exists(f.file("new")));
}

}  // namespace
}  // namespace grosr::sys
