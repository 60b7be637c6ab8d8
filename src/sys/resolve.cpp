#include "sys/resolve.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace grosr::sys {
namespace {

constexpr int races = 128;  // so many renames in a row may disturb one call

// open(2) ignores what it does not know, openat2 refuses it.
opening normal(opening o) {
  constexpr int with_path = O_PATH | O_DIRECTORY | O_NOFOLLOW;
  constexpr int known = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC |
                        O_DSYNC | O_ASYNC | O_DIRECT | O_NOATIME | O_TMPFILE | with_path;
  o.flags &= (o.flags & O_PATH) != 0 ? with_path : known;
  const bool makes = (o.flags & O_CREAT) != 0 || (o.flags & O_TMPFILE) == O_TMPFILE;
  o.mode = makes ? o.mode & 07777 : 0;
  o.flags |= O_CLOEXEC;
  if ((o.flags & O_PATH) == 0) o.flags |= O_NOCTTY;
  return o;
}

// Whether each component leads down, links aside.
bool descends(std::string_view path) {
  for (std::size_t at = path.find(".."); at != path.npos; at = path.find("..", at + 1))
    if ((at == 0 || path[at - 1] == '/') && (at + 2 == path.size() || path[at + 2] == '/'))
      return false;
  return !path.starts_with('/');
}

int by_openat2(int fd, const char* path, const opening& o) {
  open_how how{};
  how.flags = static_cast<unsigned>(o.flags);
  how.mode = o.mode;
  // Where nothing leads but down no more is needed, and RESOLVE_BENEATH takes a lock that all of
  // Linux shares.
  if (descends(path)) {
    how.resolve = RESOLVE_NO_SYMLINKS;
    const long opened = ::syscall(SYS_openat2, fd, path, &how, sizeof how);
    if (opened >= 0) return static_cast<int>(opened);
    if (errno != ELOOP && errno != EAGAIN) return -errno;
  }
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  if (!o.links) how.resolve |= RESOLVE_NO_SYMLINKS;
  for (int i = 0; i < races; ++i) {
    const long opened = ::syscall(SYS_openat2, fd, path, &how, sizeof how);
    if (opened >= 0) return static_cast<int>(opened);
    if (errno == EXDEV) return -EPERM;
    if (errno == ELOOP && !o.links && (o.flags & O_NOFOLLOW) == 0) return -EPERM;
    if (errno != EAGAIN) return -errno;
  }
  return -EAGAIN;
}

// For saying why an open failed, after it has.
bool is_link(int fd, const char* name, int flags) {
  struct ::stat s {};
  return ::fstatat(fd, name, &s, AT_SYMLINK_NOFOLLOW | flags) == 0 && S_ISLNK(s.st_mode);
}

int by_walk(int fd, std::string_view path, const opening& o) {
  std::vector<std::string> names;
  bool directory = false;  // the path ends in a slash or a dot
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view name = path.substr(at, end - at);
    if (name == "..") return -EPERM;
    directory = name.empty() || name == ".";
    if (!directory) names.emplace_back(name);
    at = end + 1;
  }
  if (names.empty()) names.emplace_back(".");
  descriptor here;
  const auto at = [&] { return here.get() < 0 ? fd : here.get(); };
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    const char* name = names[i].c_str();
    const int next = ::openat(at(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) {
      const int e = errno;
      return e == ENOTDIR && is_link(at(), name, 0) ? -EPERM : -e;
    }
    here = descriptor(next);
  }
  const char* name = names.back().c_str();
  if (directory && (o.flags & O_CREAT) != 0) return -EISDIR;
  const bool asked = (o.flags & O_NOFOLLOW) != 0;
  const int flags = o.flags | O_NOFOLLOW | (directory ? O_DIRECTORY : 0);
  const int opened = ::openat(at(), name, flags, o.mode);
  if (opened >= 0) {
    if ((flags & O_PATH) == 0 || asked || !is_link(opened, "", AT_EMPTY_PATH)) return opened;
    ::close(opened);
    return -EPERM;
  }
  const int e = errno;
  const bool refused = (e == ELOOP && !asked) || e == ENOTDIR;
  return refused && is_link(at(), name, 0) ? -EPERM : -e;
}

}  // namespace

descriptor::~descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

resolver resolver_here() {
  const descriptor root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const descriptor opened(by_openat2(root.get(), ".", normal({O_PATH | O_DIRECTORY})));
  // Old filters of containers say EPERM to calls that they do not know.
  const bool lacks = opened.get() == -ENOSYS || opened.get() == -EPERM;
  return lacks ? resolver::walk : resolver::openat2;
}

int open_below(resolver how, int fd, const char* path, const opening& what) {
  const opening o = normal(what);
  return how == resolver::openat2 ? by_openat2(fd, path, o) : by_walk(fd, path, o);
}

}  // namespace grosr::sys
