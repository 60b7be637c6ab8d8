// Unnamed files, and those with a name for a while.
#include "graph/io/output_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

namespace grosr::graphs {
namespace {

constexpr std::size_t written_at_once = std::size_t{8} << 20;  // bytes

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Where links at the end of the path lead to, which need not exist.
std::string followed(std::string path) {
  char to[PATH_MAX];
  for (int links = 0; links < 40; ++links) {
    const ssize_t n = readlink(path.c_str(), to, sizeof to);
    if (n <= 0 || n == sizeof to) break;
    const std::string next(to, static_cast<std::size_t>(n));
    path = next.front() == '/' ? next : folder_of(path) + "/" + next;
  }
  return path;
}

bool same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

output_file::~output_file() {
  if (fd_ >= 0) close(fd_);
  if (named_) unlink(temporary_.c_str());
}

int output_file::open(const std::string& path) {
  struct stat old {
  }, at_end{};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) return errno;
  const std::string end = followed(path);
  if (exists) {
    const int how = O_WRONLY | O_CLOEXEC;
    fd_ = ::open(path.c_str(), how);  // whether this may be written
    if (fd_ < 0) return errno;
    const bool in_a_folder = stat(end.c_str(), &at_end) == 0 && same(old, at_end);
    if (!S_ISREG(old.st_mode) || !in_a_folder) return 0;
    close(std::exchange(fd_, -1));
  }
  target_ = end;
  if (path.empty() || end.back() == '/') return path.empty() ? ENOENT : EISDIR;
  temporary_ = target_ + "." + std::to_string(getpid()) + ".tmp";
  fd_ = ::open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (fd_ < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
    unlink(temporary_.c_str());  // of an earlier process of that number
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    named_ = fd_ >= 0;
  }
  if (fd_ < 0) return errno;
  if (exists) {
    static_cast<void>(!fchown(fd_, old.st_uid, old.st_gid));  // as far as it is allowed
    static_cast<void>(!fchmod(fd_, old.st_mode & 07777));
  }
  return 0;
}

int output_file::write(const char* from, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t put = ::write(fd_, from, std::min(bytes, written_at_once));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    from += put;
    bytes -= static_cast<std::size_t>(put);
  }
  return 0;
}

int output_file::finish() {
  if (!target_.empty() && !named_) {
    const std::string unnamed = "/proc/self/fd/" + std::to_string(fd_);
    const auto name = [&] {
      named_ =
          linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0;
      return named_ ? 0 : errno;
    };
    int bad = name();
    if (bad == EEXIST && unlink(temporary_.c_str()) == 0) bad = name();
    if (bad != 0) return bad;
  }
  if (close(std::exchange(fd_, -1)) != 0) return errno;
  if (target_.empty()) return 0;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) return errno;
  named_ = false;
  return 0;
}

}  // namespace grosr::graphs
