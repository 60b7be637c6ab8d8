// Which folder a path belongs to, and what may be done there.
#include "sys/folders.hpp"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>

#include "grosr/simt/error.hpp"
#include "sys/descriptors.hpp"

namespace grosr::sys {
namespace {

constexpr int only_path = O_PATH | O_CLOEXEC, only_directory = only_path | O_DIRECTORY;

// The next component of an absolute path; empty at its end. Dots and double slashes are none.
std::string_view next(const char*& path) {
  for (;;) {
    while (*path == '/') ++path;
    const std::string_view name(path, ::strcspn(path, "/"));
    path += name.size();
    if (name != ".") return name;
  }
}

std::vector<std::string> components(const char* path) {
  std::vector<std::string> all;
  for (std::string_view name = next(path); !name.empty(); name = next(path)) all.emplace_back(name);
  return all;
}

// What `path` has after `prefix`; null if it does not begin so.
const char* after(const std::vector<std::string>& prefix, const char* path) {
  for (const std::string& name : prefix)
    if (next(path) != name) return nullptr;
  while (*path == '/') ++path;
  return path;
}

bool begins_with(const std::vector<std::string>& names, const std::vector<std::string>& prefix) {
  return names.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), names.begin());
}

[[noreturn]] void refuse(const folder& f, const std::string& found, const char* advice) {
  throw error(errc::invalid_option, std::string("the policy allows the folder '") + f.path.c_str() +
                                        "', but " + found + "; " + advice);
}

constexpr const char* make_it = "make the directory, or name another";

std::string text_of(int e) { return std::generic_category().message(e); }

bool same(const struct ::stat& a, const struct ::stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

// calloc, because pages that are never touched are never there.
folders::folders(const std::vector<folder>& allowed, resolver how)
    : how_(how),
      opened_(static_cast<about*>(std::calloc(descriptors::end, sizeof(about))), std::free) {
  if (!opened_) throw std::bad_alloc();
  for (const folder& f : allowed) {
    if (f.path.find('\0') != f.path.npos) refuse(f, "its path has a zero byte", make_it);
    const std::unique_ptr<char, void (*)(void*)> path(::realpath(f.path.c_str(), nullptr), ::free);
    if (path == nullptr) refuse(f, "opening it says: " + text_of(errno), make_it);
    root r{descriptor(::open(path.get(), only_directory)), f.allowed, components(path.get())};
    struct ::stat s {};
    if (r.fd.get() < 0 || ::fstat(r.fd.get(), &s) != 0)
      refuse(f, "opening it says: " + text_of(errno), make_it);
    r.device = s.st_dev;
    r.inode = s.st_ino;
    r.given = f.path.front() == '/' ? components(f.path.c_str()) : r.canonical;
    for (const root& other : roots_) {
      if (other.allowed == r.allowed) continue;
      if (other.canonical == r.canonical)
        refuse(f, "also with another access", "list it once, with the access that is meant");
      mixed_ |=
          begins_with(other.canonical, r.canonical) || begins_with(r.canonical, other.canonical);
    }
    roots_.push_back(std::move(r));
  }
}

folders::place folders::holding(int fd, sys::access allowed, const char* rest) {
  return {fd, allowed, rest, descriptor(fd)};
}

const folders::root* folders::root_of(const struct ::stat& s) const {
  for (const root& r : roots_)
    if (r.inode == s.st_ino && r.device == s.st_dev) return &r;
  return nullptr;
}

bool folders::is_folder(const place& p) const {
  struct ::stat s {};
  return mixed_ && ::fstatat(p.fd, p.rest, &s, AT_SYMLINK_NOFOLLOW) == 0 && root_of(s) != nullptr;
}

// The access of the folder that the directory `fd` is, or is nearest below. No call here moves a
// directory out of or into a folder that is only read, so it stays true as long as fd is open.
access folders::allowed_at(int fd) const {
  struct ::stat s {};
  struct ::stat above {};
  descriptor here;
  if (::fstat(fd, &s) != 0 || !S_ISDIR(s.st_mode)) return access::read;
  for (;;) {
    if (const root* r = root_of(s)) return r->allowed;
    here = descriptor(::openat(here.get() < 0 ? fd : here.get(), "..", only_directory));
    if (here.get() < 0 || ::fstat(here.get(), &above) != 0 || same(s, above)) return access::read;
    s = above;
  }
}

// A copy of `directory`, which another thread may close meanwhile, and its number be used again.
folders::place folders::lookup(int directory) const {
  if (directory == AT_FDCWD) {
    if (roots_.empty()) return {-EPERM};
    return {roots_.front().fd.get(), roots_.front().allowed};
  }
  if (directory < 0 || directory >= descriptors::end) return {-EBADF};
  about& d = about_of(directory);
  if (d.is.load(std::memory_order_relaxed) == unknown) return {-EBADF};
  // Said first, looked at afterwards; forget() does it the other way around.
  d.copying.fetch_add(1, std::memory_order_seq_cst);
  const known is = d.is.load(std::memory_order_seq_cst);
  const int copy = is == unknown ? -1 : ::fcntl(directory, F_DUPFD_CLOEXEC, 0);
  const int e = is == unknown ? EBADF : errno;
  d.copying.fetch_sub(1, std::memory_order_release);
  if (copy < 0) return {-e};
  return holding(copy, is == writable ? sys::access::write : sys::access::read, "");
}

// The directory that a path begins in; `rest` is not empty.
folders::place folders::begin(int directory, const char* path) const {
  if (path == nullptr) return {-EFAULT};
  if (*path == '\0') return {-ENOENT};
  if (::strnlen(path, PATH_MAX) == PATH_MAX) return {-ENAMETOOLONG};
  if (*path != '/') {
    place p = lookup(directory);
    p.rest = path;
    return p;
  }
  place best{-EPERM};
  std::size_t longest = 0;
  for (const root& r : roots_) {
    for (const names* prefix : {&r.canonical, &r.given}) {
      const char* rest = after(*prefix, path);
      if (rest == nullptr || (best.fd >= 0 && prefix->size() <= longest)) continue;
      longest = prefix->size();
      best.fd = r.fd.get();
      best.allowed = r.allowed;
      best.rest = *rest == '\0' ? "." : rest;
    }
  }
  return best;
}

// The directory that holds the last component, which becomes `rest`, with slashes that follow it;
// -none if that is no name.
folders::place folders::parent(const place& start, int none) const {
  const std::string_view path(start.rest);
  const std::size_t end = path.find_last_not_of('/') + 1;
  const std::size_t slash = path.substr(0, end).rfind('/');
  const std::size_t at = slash == path.npos ? 0 : slash + 1;
  const std::string_view name = path.substr(at, end - at);
  if (name == "." || name == "..") return {-none};
  const std::string above = at == 0 ? "." : std::string(path.substr(0, at));
  const int fd = open_below(how_, start.fd, above.c_str(), {only_directory});
  if (fd < 0) return {fd};
  place p = holding(fd, start.allowed, start.rest + at);
  if (mixed_) p.allowed = allowed_at(fd);
  return p;
}

folders::place folders::parent_to_write(int directory, const char* path, int none) const {
  const place start = begin(directory, path);
  if (start.fd < 0) return {start.fd};
  if (!mixed_ && start.allowed != access::write) return {-EPERM};
  place p = parent(start, none);
  if (p.fd >= 0 && p.allowed != access::write) return {-EPERM};
  return p;
}

// What a path names, not opened for anything.
folders::place folders::target(int directory, const char* path, int flags) const {
  if (path != nullptr && *path == '\0' && (flags & AT_EMPTY_PATH) != 0) return lookup(directory);
  const place start = begin(directory, path);
  if (start.fd < 0) return {start.fd};
  const int links = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
  return holding(open_below(how_, start.fd, start.rest, {only_path | links}), start.allowed, "");
}

folders::place folders::target_to_write(int directory, const char* path, int flags) const {
  const place start = begin(directory, path);
  if (start.fd < 0) return {start.fd};
  const int links = (flags & AT_SYMLINK_NOFOLLOW) != 0 ? O_NOFOLLOW : 0;
  const opening what{only_path | links};
  const int fd = mixed_                           ? open_to_write(start, what)
                 : start.allowed == access::write ? open_below(how_, start.fd, start.rest, what)
                                                  : -EPERM;
  return holding(fd, access::write, "");
}

// Where access differs by folder: the last component must lie in a directory that may be written,
// or be one.
int folders::open_to_write(const place& start, const opening& what) const {
  opening last = what;
  last.links = false;
  place p = parent(start, EISDIR);
  if (p.fd == -EISDIR || (what.flags & O_TMPFILE) == O_TMPFILE) {
    p = holding(open_below(how_, start.fd, start.rest, {only_directory}), access::read, ".");
    if (p.fd >= 0) p.allowed = allowed_at(p.fd);
  }
  if (p.fd < 0) return p.fd;
  if (p.allowed != access::write) return -EPERM;
  const int fd = open_below(how_, p.fd, p.rest, last);
  struct ::stat s {};
  if (fd < 0 || ::fstat(fd, &s) != 0 || !S_ISDIR(s.st_mode)) return fd;
  if (allowed_at(fd) == access::write) return fd;
  ::close(fd);
  return -EPERM;
}

long folders::openat(int directory, const char* path, int flags, unsigned mode) const {
  const place start = begin(directory, path);
  if (start.fd < 0) return start.fd;
  const bool writes = (flags & O_ACCMODE) != O_RDONLY ||
                      (flags & (O_CREAT | O_TRUNC | O_APPEND)) != 0 ||
                      (flags & O_TMPFILE) == O_TMPFILE;
  if (writes && !mixed_ && start.allowed != access::write) return -EPERM;
  const opening what{flags, mode};
  const int fd =
      writes && mixed_ ? open_to_write(start, what) : open_below(how_, start.fd, start.rest, what);
  if (fd < 0) return fd;
  if (fd >= descriptors::end) return fd;  // no kernel gets it
  about_of(fd).is.store(start.allowed == sys::access::write ? writable : readable,
                        std::memory_order_release);
  return fd;
}

void folders::forget(int fd) const {
  if (fd < 0 || fd >= descriptors::end) return;
  about& d = about_of(fd);
  d.is.store(unknown, std::memory_order_seq_cst);
  while (d.copying.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
}

}  // namespace grosr::sys
