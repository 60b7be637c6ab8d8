#include "children.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "cli/errors.hpp"
#include "cli/text.hpp"
#include "grosr/simt/error.hpp"
#include "wire.hpp"

extern char** environ;

namespace grosr::gesture {
namespace {

[[noreturn]] void fail(const std::string& asked, int why) {
  throw error(errc::out_of_memory,
              fmt::format("{} ({}); end other programs, or allow this user more "
                          "files and processes (ulimit -n, ulimit -u)",
                          asked, std::strerror(why)));
}

constexpr auto patience = std::chrono::seconds(5);

}  // namespace

owned_file::~owned_file() {
  if (file_ >= 0) ::close(file_);
}

std::pair<owned_file, owned_file> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe could be made", errno);
  return {owned_file(ends[0]), owned_file(ends[1])};
}

owned_file make_memory_file(const char* name) {
  const int f = ::memfd_create(name, MFD_CLOEXEC);
  if (f < 0) fail("no file in memory could be made", errno);
  return owned_file(f);
}

void children::start(const std::vector<std::string>& arguments, const owned_file& in,
                     const owned_file& out) {
  child c{0, arguments.at(0), make_memory_file("errors")};
  std::vector<std::string> text{"gesture"};
  text.insert(text.end(), arguments.begin(), arguments.end());
  std::vector<char*> values;
  for (std::string& t : text) values.push_back(t.data());
  values.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, c.errors.get(), STDERR_FILENO);
  const int bad =
      ::posix_spawn(&c.process, "/proc/self/exe", &actions, nullptr, values.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (bad != 0) fail(fmt::format("stage {} could not be started", c.stage), bad);
  all_.push_back(std::move(c));
}

std::string children::said(const child& c) {
  char text[500];
  const ssize_t n = ::pread(c.errors.get(), text, sizeof text, 0);
  std::string line(text, n > 0 ? static_cast<std::size_t>(n) : 0);
  line = line.substr(0, line.find('\n'));
  if (line.starts_with("gesture: ")) line.erase(0, std::strlen("gesture: "));
  return tool::one_line(line);
}

std::string children::why_ended() {
  const auto until = std::chrono::steady_clock::now() + patience;
  bool killed = false;
  for (std::size_t left = all_.size(); left != 0;) {
    left = 0;
    for (child& c : all_) {
      if (c.ended) continue;
      c.ended = ::waitpid(c.process, &c.status, WNOHANG) != 0;
      left += c.ended ? 0 : 1;
    }
    if (left == 0) break;
    if (!killed && std::chrono::steady_clock::now() > until) {
      for (const child& c : all_)
        if (!c.ended) ::kill(c.process, SIGKILL);
      killed = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  const auto code = [](const child& c) { return WIFEXITED(c.status) ? WEXITSTATUS(c.status) : -1; };
  for (const child& c : all_)
    if (WIFSIGNALED(c.status) && !(killed && WTERMSIG(c.status) == SIGKILL))
      return fmt::format("stage {} was ended by signal {} ({})", c.stage, WTERMSIG(c.status),
                         ::strsignal(WTERMSIG(c.status)));
  for (const child& c : all_)
    if (code(c) != 0 && code(c) != exit_neighbour_gone && code(c) != -1)
      return fmt::format("stage {} has failed: {}", c.stage, said(c));
  for (const child& c : all_)
    if (code(c) != 0)
      return fmt::format("stage {} has failed: {}", c.stage,
                         code(c) == -1 ? "it did not end, and was killed" : said(c));
  return "";
}

children::~children() {
  for (child& c : all_) {
    if (c.ended) continue;
    ::kill(c.process, SIGKILL);
    ::waitpid(c.process, &c.status, 0);
  }
}

}  // namespace grosr::gesture
