#include "flow/port_name.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "flow/refuse.hpp"

namespace grosr::flow {
namespace {

constexpr int socket_passes_rights = 83;  // SO_PASSRIGHTS, which not all headers have

sockaddr_un address_of(const std::string& path) {
  sockaddr_un a = {};
  a.sun_family = AF_UNIX;
  path.copy(a.sun_path, sizeof a.sun_path - 1);
  return a;
}

bool is_own_folder(const std::string& path) {
  struct ::stat is = {};
  return ::stat(path.c_str(), &is) == 0 && S_ISDIR(is.st_mode) && is.st_uid == geteuid();
}

std::string own_folder() {
  const char* const run = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = run != nullptr && run[0] == '/' && is_own_folder(run)
                                 ? std::string(run) + "/grosr"
                                 : fmt::format("/tmp/grosr-{}", geteuid());
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    refuse(fmt::format("ports: cannot make folder {} ({}); name another one in the options", folder,
                       std::strerror(errno)));
  return folder;
}

/// The lock of a name: whoever has it may make and remove the name's socket. Linux gives it back
/// when the process ends, in whatever way.
owned_descriptor take_lock(const std::string& path, const std::string& name) {
  for (;;) {
    owned_descriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock) throw_errno(path.c_str());
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) throw_errno("flock");
      std::array<char, 24> pid = {};
      const ssize_t n = pread(lock.get(), pid.data(), pid.size() - 1, 0);
      refuse(
          fmt::format("share port '{}': process {} serves that name; end it, or choose another "
                      "name",
                      name, n > 0 ? pid.data() : "(just starting)"));
    }
    // The one that had it may have removed the file meanwhile.
    struct ::stat held = {}, there = {};
    if (fstat(lock.get(), &held) != 0) throw_errno("fstat");
    if (lstat(path.c_str(), &there) != 0 || held.st_ino != there.st_ino) continue;
    const std::string pid = std::to_string(getpid());
    if (ftruncate(lock.get(), 0) != 0 ||
        pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
      throw_errno(path.c_str());
    return lock;
  }
}

owned_descriptor make_socket(int flags) {
  owned_descriptor s(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!s) throw_errno("socket");
  return s;
}

/// A connection, or errno.
std::pair<owned_descriptor, int> try_connect(const std::string& path,
                                             port_clock::time_point until) {
  owned_descriptor s = make_socket(0);
  if (until != port_clock::time_point::max()) {  // a server that does not accept is waited for
    const auto us = std::max<std::int64_t>(
        1,
        std::chrono::duration_cast<std::chrono::microseconds>(until - port_clock::now()).count());
    const timeval left{us / 1'000'000, us % 1'000'000};
    setsockopt(s.get(), SOL_SOCKET, SO_SNDTIMEO, &left, sizeof left);
  }
  const sockaddr_un to = address_of(path);
  while (::connect(s.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    if (errno != EINTR) return {owned_descriptor(), errno};
  return {std::move(s), 0};
}

}  // namespace

std::string folder_of_ports(const std::string& given, const port_users& owners) {
  const std::string folder = given.empty() ? own_folder() : given;
  struct ::stat is = {};
  if (lstat(folder.c_str(), &is) != 0)
    refuse(fmt::format("ports: folder {}: {}; make it, or name another one", folder,
                       std::strerror(errno)));
  if (!S_ISDIR(is.st_mode)) refuse(fmt::format("ports: {} is no folder; name one", folder));
  if (is.st_uid != geteuid() && (given.empty() || !is_among(owners, is.st_uid)))
    refuse(
        fmt::format("ports: folder {} belongs to user {}, who is not trusted; name another one, "
                    "or that user",
                    folder, is.st_uid));
  if (const unsigned open_to = is.st_mode & (given.empty() ? 077u : 022u); open_to != 0)
    refuse(
        fmt::format("ports: folder {} has mode {:03o}, and other users could put ports there; "
                    "take these rights away (chmod {})",
                    folder, is.st_mode & 0777, given.empty() ? "700" : "go-w"));
  return folder;
}

std::string path_of_port(const std::string& folder, const std::string& name) {
  const bool good = !name.empty() && name.size() <= 64 && name[0] != '.' &&
                    std::all_of(name.begin(), name.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                             (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
                    });
  if (!good)
    refuse(
        fmt::format("port '{}': names have 1 to 64 letters, digits, '.', '-' and '_', and do "
                    "not begin with '.'",
                    name));
  std::string path = folder + "/" + name;
  constexpr std::size_t beside = 16;  // what temporary names and that of the lock have more
  if (path.size() + beside >= sizeof(sockaddr_un::sun_path))
    refuse(
        fmt::format("port '{}': its path {} is longer than sockets can have; choose a shorter "
                    "name or folder",
                    name, path));
  return path;
}

port_name::port_name(const std::string& folder, const std::string& name, bool for_others)
    : path_(path_of_port(folder, name)),
      lock_path_(folder + "/." + name + ".lock"),
      lock_(take_lock(lock_path_, name)),
      socket_(make_socket(SOCK_NONBLOCK)) {
  // The name comes into being when the socket accepts: a client that waits for it finds it whole.
  struct ::stat there = {};
  if (lstat(path_.c_str(), &there) == 0 &&
      (!S_ISSOCK(there.st_mode) || try_connect(path_, port_clock::now()).second != ECONNREFUSED))
    refuse(
        fmt::format("share port '{}': {} is there already and is no port that a dead process has "
                    "left; choose another name or folder",
                    name, path_));
  // Descriptors that come unasked are closed in this process, which may take as long as the client
  // likes. Linux before 6.16 cannot keep them out.
  const int no = 0;
  setsockopt(socket_.get(), SOL_SOCKET, socket_passes_rights, &no, sizeof no);
  const std::string made = fmt::format("{}/.{}.new", folder, name);
  ::unlink(made.c_str());
  const sockaddr_un at = address_of(made);
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
    throw_errno("bind");
  if (::chmod(made.c_str(), for_others ? 0666 : 0600) != 0 || ::listen(socket_.get(), 128) != 0 ||
      ::rename(made.c_str(), path_.c_str()) != 0) {
    const int failed = errno;
    ::unlink(made.c_str());
    throw std::system_error(failed, std::generic_category(), path_);
  }
}

port_name::~port_name() {
  ::unlink(path_.c_str());
  ::unlink(lock_path_.c_str());
}

owned_descriptor connect_to_port(const std::string& folder, const std::string& name,
                                 port_clock::time_point until) {
  const std::string path = path_of_port(folder, name);
  owned_descriptor changes;  // of the folder
  for (;;) {
    auto [socket, failed] = try_connect(path, until);
    if (socket) return std::move(socket);
    if (failed == EACCES || failed == EPERM)
      throw error(errc::misuse,
                  fmt::format("connect to port '{}': user {} may not; name that user where the "
                              "port is shared",
                              name, geteuid()));
    if (failed != ENOENT && failed != ECONNREFUSED && failed != EAGAIN)
      throw std::system_error(failed, std::generic_category(), path);
    if (port_clock::now() >= until) return owned_descriptor();
    if (!changes) {
      changes = owned_descriptor(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
      if (!changes) throw_errno("inotify_init1");
      if (inotify_add_watch(changes.get(), folder.c_str(), IN_MOVED_TO) < 0)
        throw_errno("inotify_add_watch");
      continue;
    }
    wait_for_descriptor(changes.get(), POLLIN, until);
    std::array<char, 4096> events;
    while (::read(changes.get(), events.data(), events.size()) > 0) {
    }
  }
}

}  // namespace grosr::flow
