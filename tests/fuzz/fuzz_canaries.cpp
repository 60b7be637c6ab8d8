#include "fuzz/fuzz_canaries.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "grosr/simt/error.hpp"

namespace grosr::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t page = 4096, pages = 8;

std::string magic_text(std::size_t words) {
  std::string text;
  for (std::size_t i = 0; i < words; ++i)
    text.append(reinterpret_cast<const char*>(&canaries::magic), 8);
  return text;
}

std::string content(const std::string& path) {
  std::ifstream f(path, std::ios::binary);
  std::ostringstream text;
  text << f.rdbuf();
  return text.str();
}

std::string status_of(const struct stat& s) {
  return fmt::format("{}:{} mode {:o} links {} owner {}:{} bytes {} mtime {}.{} ctime {}.{}",
                     s.st_dev, s.st_ino, s.st_mode, s.st_nlink, s.st_uid, s.st_gid, s.st_size,
                     s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
}

std::string fd_facts(int fd) {
  struct stat s {};
  if (::fstat(fd, &s) != 0) return "closed";
  int waiting = 0;
  if (::ioctl(fd, FIONREAD, &waiting) != 0) waiting = -1;
  const bool is_file = S_ISREG(s.st_mode);
  return fmt::format("{}:{} mode {:o} flags {:x} {:x} at {} waiting {}", s.st_dev, s.st_ino,
                     s.st_mode, ::fcntl(fd, F_GETFD), ::fcntl(fd, F_GETFL),
                     is_file ? ::lseek(fd, 0, SEEK_CUR) : 0, is_file ? 0 : waiting);
}

std::string link_text(const char* path) {
  char text[4096];
  const ssize_t n = ::readlink(path, text, sizeof text);
  return n < 0 ? "" : std::string(text, static_cast<std::size_t>(n));
}

/// Permissions and flags of the mapping at an address.
std::string mapping_at(const void* at) {
  std::ifstream f("/proc/self/smaps");
  const auto address = reinterpret_cast<std::uint64_t>(at);
  std::string line, found;
  while (std::getline(f, line)) {
    std::uint64_t begin = 0, end = 0;
    char permissions[8] = {};
    if (std::sscanf(line.c_str(), "%lx-%lx %7s", &begin, &end, permissions) == 3) {
      if (address >= begin && address < end)
        found = permissions;
      else if (!found.empty())
        break;
    } else if (!found.empty() && line.starts_with("VmFlags")) {
      return found + line;
    }
  }
  return found;
}

}  // namespace

canaries::canaries() {
  std::string name = fs::canonical(fs::temp_directory_path()) / "grosr-fuzz.XXXXXX";
  if (::mkdtemp(name.data()) == nullptr)
    throw error(errc::invalid_option,
                "make the folder " + name + ": not possible; let TMPDIR name a folder with room");
  top_ = name;
  for (const char* d : {"/rw", "/ro", "/ro/d", "/out", "/out/d"}) fs::create_directory(top_ + d);
  const std::string secret = magic_text(512);
  write("/out/secret", secret);
  write("/out/d/inner", secret);
  write("/ro/file", "to be read\n");
  write("/ro/d/file", "to be read as well\n");
  ::chmod((top_ + "/out/secret").c_str(), 0640);

  const int memory = ::memfd_create("private", MFD_CLOEXEC);
  if (::write(memory, secret.data(), secret.size()) < 0) throw error(errc::out_of_memory, "memfd");
  int ends[2], sockets[2];
  if (::pipe2(ends, O_CLOEXEC) != 0 ||
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    throw error(errc::out_of_memory, "make a pipe and a pair of sockets: not possible");
  for (int fd : {ends[1], sockets[1]})
    if (::write(fd, secret.data(), 64) < 0) throw error(errc::out_of_memory, "write to a pipe");
  private_ = {memory,
              ends[0],
              ends[1],
              sockets[0],
              sockets[1],
              ::open((top_ + "/out").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
              ::open((top_ + "/out/secret").c_str(), O_RDWR | O_CLOEXEC),
              ::eventfd(5, EFD_CLOEXEC | EFD_NONBLOCK)};
  pages_ = static_cast<unsigned char*>(
      ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t i = 0; i < pages * page; i += 8) std::memcpy(pages_ + i, &magic, 8);
  ::mprotect(pages_ + 3 * page, page, PROT_READ);

  events_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  constexpr std::uint32_t changes =
      IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MOVE_SELF;
  for (const char* d : {"/out", "/out/d"})
    ::inotify_add_watch(events_, (top_ + d).c_str(), changes | IN_OPEN | IN_ACCESS);
  for (const char* d : {"/ro", "/ro/d"}) ::inotify_add_watch(events_, (top_ + d).c_str(), changes);
  before_ = look();
}

canaries::~canaries() {
  for (int fd : private_) ::close(fd);
  ::close(events_);
  ::munmap(pages_, pages * page);
  std::error_code ignored;
  fs::remove_all(top_, ignored);
}

void canaries::write(const std::string& name, const std::string& text) const {
  std::ofstream(top_ + name, std::ios::binary) << text;
}

void canaries::furnish() {
  std::error_code ignored;
  for (const auto& one : fs::directory_iterator(rw())) fs::remove_all(one.path(), ignored);
  write("/rw/a", std::string(100000, 'a'));
  write("/rw/b", "b");
  fs::create_directories(rw() + "/d/e");
  write("/rw/d/a", "deep");
  fs::create_symlink(top_ + "/out/secret", rw() + "/link");
  fs::create_symlink("../out", rw() + "/linked");
  fs::create_symlink("../../../../../../../../etc/passwd", rw() + "/d/far");
  fs::create_symlink("/proc/self/fd", rw() + "/fds");
  fs::create_symlink("loop", rw() + "/loop");
  fs::create_symlink("a", rw() + "/inner");
  ::mkfifo((rw() + "/fifo").c_str(), 0600);
}

fuzz::path_list canaries::paths() const {
  fuzz::path_list p;
  p.inside = {"a",
              "b",
              "c",
              "d/a",
              "d/b",
              "d",
              "d/e",
              "d/e/f",
              "./a",
              "d/../b",
              "e",
              "f",
              "d/e/g",
              "inner",
              rw() + "/a",
              rw() + "/d",
              ro() + "/file",
              ro() + "/d",
              ro() + "/d/file",
              ro() + "/new",
              "g",
              ".",
              "fifo"};
  p.strange = {"",
               "a/",
               "a/b",
               "nothing/x",
               "d/",
               "//",
               "./././a",
               "link",
               "linked/secret",
               "linked",
               "linked/d/inner",
               "d/far",
               "fds/0",
               "fds/3",
               "loop",
               "user.x",
               "security.x",
               std::string(255, 'n'),
               std::string(256, 'n'),
               std::string(4095, '/'),
               std::string(4096, 'p'),
               std::string(5119, 'p'),
               std::string("a\0b", 3),
               "\xff\xfe"};
  const std::string out = top_ + "/out";
  p.outside = {"..",
               "../out/secret",
               "../out",
               "../out/new",
               "d/../../out/secret",
               "/",
               "/etc/passwd",
               out,
               out + "/secret",
               out + "/new",
               out + "/d",
               out + "/d/inner",
               rw() + "/../out/secret",
               "/proc/self/environ",
               "/proc/self/mem",
               "/proc/self/maps",
               fmt::format("/proc/self/fd/{}", private_[0]),
               fmt::format("/dev/fd/{}", private_[6]),
               "/proc/self/cwd",
               "/dev/shm",
               "/sys",
               top_,
               top_ + "/ro/../out/secret",
               "d/e/../../../out/d"};
  return p;
}

std::vector<std::uint64_t> canaries::memory() const {
  const auto at = reinterpret_cast<std::uint64_t>(pages_);
  return {at, at + page, at + 2 * page, at + 3 * page, at + 5 * page};
}

canaries::facts canaries::look() const {
  facts f;
  for (const char* name : {"/out", "/out/secret", "/out/d", "/out/d/inner", "/ro", "/ro/file",
                           "/ro/d", "/ro/d/file"}) {
    struct stat s {};
    f[top_ + name] = ::lstat((top_ + name).c_str(), &s) == 0 ? status_of(s) : "gone";
  }
  for (std::size_t i = 0; i < private_.size(); ++i)
    f[fmt::format("private descriptor {}", i)] = fd_facts(private_[i]);
  for (int fd : {0, 1, 2}) {
    struct stat s {};
    f[fmt::format("descriptor {}", fd)] =
        ::fstat(fd, &s) == 0 ? fmt::format("{}:{} {:x}", s.st_dev, s.st_ino, ::fcntl(fd, F_GETFL))
                             : "closed";
  }
  for (std::size_t i = 0; i < pages; ++i)
    f[fmt::format("private page {}", i)] = mapping_at(pages_ + i * page);
  f["working directory"] = link_text("/proc/self/cwd");
  f["root"] = link_text("/proc/self/root");
  f["limits"] = content("/proc/self/limits");
  f["personality"] = content("/proc/self/personality");
  f["timers"] = content("/proc/self/timers");
  f["session"] = fmt::format("{} {} {}", ::getsid(0), ::getpgrp(), ::prctl(PR_GET_DUMPABLE));
  itimerval t{};
  ::getitimer(ITIMER_REAL, &t);
  f["alarm"] = fmt::format("{} {}", t.it_value.tv_sec, t.it_interval.tv_sec);
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    for (const char* key :
         {"Umask", "Uid", "Gid", "Groups", "SigIgn", "SigCgt", "CapEff", "CapPrm"})
      if (line.starts_with(key)) f[key] = line;
  return f;
}

std::string canaries::touched() {
  alignas(inotify_event) char some[4096];
  const ssize_t n = ::read(events_, some, sizeof some);
  if (n > 0) {
    const auto* e = reinterpret_cast<const inotify_event*>(some);
    return fmt::format("a file outside was touched: {} (inotify event {:#x})",
                       e->len != 0 ? e->name : "its folder", e->mask);
  }
  for (std::size_t i = 0; i < pages * page; i += 8)
    if (std::memcmp(pages_ + i, &magic, 8) != 0)
      return fmt::format("byte {} of the program's own memory was changed", i);
  return "";
}

std::string canaries::changed() {
  std::string why = touched();
  const facts now = look();
  for (const auto& [what, was] : before_)
    if (const auto it = now.find(what); it == now.end() || it->second != was)
      return fmt::format("{}{} was '{}' and is '{}'", why.empty() ? "" : why + "; ", what, was,
                         it == now.end() ? "" : it->second);
  if (why.empty()) {
    std::string text(4096, 0);
    if (::pread(private_[0], text.data(), text.size(), 0) != 4096 || text != magic_text(512))
      why = "the program's own memfd has other bytes";
    eventfd_t value = 0;
    if (::eventfd_read(private_[7], &value) != 0 || value != 5)
      why = "the program's own eventfd was used";
    ::eventfd_write(private_[7], 5);
  }
  return why;
}

std::map<int, std::string> open_descriptors() {
  std::map<int, std::string> all;
  std::vector<int> numbers;
  for (const auto& one : fs::directory_iterator("/proc/self/fd"))
    numbers.push_back(std::stoi(one.path().filename()));
  for (int fd : numbers) {
    const std::string to = link_text(fmt::format("/proc/self/fd/{}", fd).c_str());
    if (!to.empty()) all[fd] = to;
  }
  return all;
}

std::string odd_mappings() {
  std::ifstream f("/proc/self/maps");
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::string odd;
  for (std::string line; std::getline(f, line);) {
    if (line.ends_with(program)) continue;
    for (const char* what : {"[aio]", "/SYSV", "io_uring", "grosr-fuzz", "rwxp", "secretmem"})
      if (line.find(what) != line.npos) odd += line + "\n";
  }
  std::ifstream shm("/proc/sysvipc/shm");
  const std::string self = std::to_string(::getpid());
  for (std::string line; std::getline(shm, line);) {
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 5; ++i) words >> word;
    if (word == self) odd += "shared memory " + line + "\n";
  }
  return odd;
}

std::uint64_t status_bytes(const char* key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key)) return std::stoull(line.substr(std::strlen(key) + 1)) * 1024;
  return 0;
}

}  // namespace grosr::tool
