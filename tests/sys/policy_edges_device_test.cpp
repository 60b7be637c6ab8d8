// What a policy does not name is not reached by a detour: files by the names of sockets, rights of
// other users by the modes of files.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include "sys/peers.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(policy_edges);

struct named {
  sockaddr_un name;
  std::uint32_t bytes;
};

struct use_names {
  server_ref sys;
  int fd;
  const named* names;  // of what listens, of what is not there, without a path
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    for (unsigned i = 0; i < 3; ++i) {
      const named n = names[i];
      *r_at(3 * i) = bind(sys, fd, &n.name, n.bytes);
      *r_at(3 * i + 1) = connect(sys, fd, &n.name, n.bytes);
      *r_at(3 * i + 2) = sendto(sys, fd, "text", 4, MSG_DONTWAIT, &n.name, n.bytes);
    }
  }
  GROSR_DEVICE std::int64_t* r_at(unsigned i) const { return r + i; }
};

TEST_P(policy_edges, granted_sockets_reach_no_paths) {
  own_folder f;
  std::vector<named> names(3);
  const std::string paths[] = {f.file("listens"), f.file("not_there"), std::string("\0grosr", 6)};
  for (unsigned i = 0; i < 3; ++i) {
    names[i].name.sun_family = AF_UNIX;
    std::memcpy(names[i].name.sun_path, paths[i].data(), paths[i].size());
    names[i].bytes = static_cast<std::uint32_t>(offsetof(sockaddr_un, sun_path) + paths[i].size());
  }
  const int listens = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ASSERT_EQ(::bind(listens, reinterpret_cast<const sockaddr*>(&names[0].name), names[0].bytes), 0);
  for (const bool arena : {true, false}) {
    const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    options o = networked();
    o.use_arena = arena;
    server s(where(), o);
    s.grant(fd);
    simt::buffer<named> there(where(), simt::space::device, 3);
    there.copy_from(names);
    auto r = make<std::int64_t>(9);
    run(1, 32, use_names{s.ref(), fd, there.data(), r.data()});
    EXPECT_EQ(contents(r), std::vector<std::int64_t>(9, -EPERM));
    ::close(fd);
  }
  char some[8];
  EXPECT_EQ(::recv(listens, some, sizeof some, 0), -1);
  EXPECT_FALSE(std::filesystem::exists(paths[1]));
  ::close(listens);
}

struct make_files {
  server_ref sys;
  const char* name;  // shared memory: "security.capability", "trusted.x", "file"
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    r[i++] = open(sys, "one", O_CREAT | O_WRONLY, 04755);
    r[i++] = open(sys, "two", O_CREAT | O_WRONLY, 02755);
    r[i++] = open(sys, ".", O_TMPFILE | O_WRONLY, 06755);
    const long file = open(sys, "file", O_CREAT | O_RDWR, 0755);
    r[i++] = syscall(sys, SYS_fchmod, file, 04755);
    r[i++] = syscall(sys, SYS_fchmod, file, 02755);
    r[i++] = syscall(sys, SYS_fchmodat, AT_FDCWD, name + 64, 04755);
    r[i++] = syscall(sys, SYS_fsetxattr, file, name, name, 20L, 0);
    r[i++] = syscall(sys, SYS_fsetxattr, file, name + 32, name, 4L, 0);
    r[i++] = syscall(sys, SYS_fremovexattr, file, name);
    r[i++] = syscall(sys, SYS_fchmod, file, 0700);
    r[i++] = open(sys, "file", O_RDONLY, 04755) >= 0;  // which makes no file
  }
};

TEST_P(policy_edges, files_give_nobody_the_programs_rights) {
  own_folder f;
  simt::buffer<char> names(where(), simt::space::pinned, 96);
  std::strcpy(names.data(), "security.capability");
  std::strcpy(names.data() + 32, "trusted.x");
  std::strcpy(names.data() + 64, "file");
  server s(where(), options_for(f));
  s.share(std::as_writable_bytes(std::span(names.data(), 96)));
  auto r = make<std::int64_t>(11);
  run(1, 32, make_files{s.ref(), names.data(), r.data()});
  const auto got = contents(r);
  for (unsigned i = 0; i < 9; ++i) EXPECT_EQ(got[i], -EPERM) << i;
  EXPECT_EQ(got[9], 0);
  EXPECT_EQ(got[10], 1);
  EXPECT_FALSE(std::filesystem::exists(f.file("one")));
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(f.file("file")).permissions(), static_cast<perms>(0700));
}

}  // namespace
}  // namespace grosr::sys
