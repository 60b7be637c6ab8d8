#include "own_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>

namespace grosr::cryptfs {
namespace {

[[noreturn]] void fail(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

shared_memory::shared_memory(std::size_t bytes)
    : memory_(memfd_create("cryptfs", MFD_CLOEXEC)), bytes_(bytes) {
  if (memory_.fd < 0 || ftruncate(memory_.fd, static_cast<off_t>(bytes)) != 0)
    fail("no memory could be shared with another process");
  map();
}

shared_memory::shared_memory(taken, int fd) : memory_(fd) {
  struct stat s;
  if (fstat(fd, &s) != 0) fail("no memory is shared with another process");
  bytes_ = static_cast<std::size_t>(s.st_size);
  map();
}

void shared_memory::map() {
  data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.fd, 0);
  if (data_ == MAP_FAILED) fail("no memory is shared with another process");
}

shared_memory::~shared_memory() { munmap(data_, bytes_); }

pipe_ends::pipe_ends() {
  int both[2];
  if (pipe2(both, O_CLOEXEC) != 0)
    throw std::runtime_error(fmt::format("no pipe could be made ({})", std::strerror(errno)));
  read_end = both[0];
  write_end = both[1];
}

pipe_ends::~pipe_ends() {
  close_end(read_end);
  close_end(write_end);
}

void pipe_ends::close_end(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

pid_t start_own(std::vector<std::string> arguments, const std::vector<int>& descriptors) {
  arguments.insert(arguments.begin(), "cryptfs");
  std::vector<char*> text;
  for (std::string& a : arguments) text.push_back(a.data());
  text.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::vector<std::unique_ptr<descriptor>> moved;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    const int number = static_cast<int>(i < 2 ? i : i + 1);
    if (descriptors[i] < 0) {
      posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0);
      continue;
    }
    // Above the numbers that they get, so that one does not take the other's place.
    moved.push_back(std::make_unique<descriptor>(fcntl(descriptors[i], F_DUPFD_CLOEXEC, 10)));
    posix_spawn_file_actions_adddup2(&actions, moved.back()->fd, number);
  }
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setpgroup(&how, 0);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int wrong = posix_spawn(&child, "/proc/self/exe", &actions, &how, text.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&how);
  if (wrong != 0)
    throw std::runtime_error(fmt::format("no process could be started ({})", std::strerror(wrong)));
  return child;
}

void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

}  // namespace grosr::cryptfs
