// `grosr bench pair-of-programs`: two processes, each with a runtime that would like the whole
// device. A program that waits for ever for its grid to be scheduled shows up here.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "cases/benches.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "work/trees.hpp"

extern char** environ;

namespace grosr::tool {
namespace {

constexpr unsigned trees = 8;

/// One more of this program, running `pair-child`. Ended, if it must be, by the destructor.
class child {
 public:
  child(const device& d, std::uint32_t depth) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("make a pipe");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    const std::string name = d.name(), number = std::to_string(depth);
    const char* arguments[] = {"grosr-bench", "pair-child", number.c_str(),
                               "--device",    name.c_str(), nullptr};
    const int bad = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr,
                                const_cast<char* const*>(arguments), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    output_ = ends[0];
    errno = bad;
    if (bad != 0) fail("start a second program");
  }
  ~child() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(output_);
  }
  child(const child&) = delete;

  /// True once it has ended; then `status` and `text` say how.
  bool ended() {
    if (pid_ <= 0) return true;
    drain();
    if (waitpid(pid_, &status_, WNOHANG) != pid_) return false;
    pid_ = 0;
    drain();
    return true;
  }

  /// Empty if it ended well.
  std::string wrong() const {
    if (pid_ > 0) return "did not finish";
    if (WIFSIGNALED(status_)) return "ended by signal " + std::to_string(WTERMSIG(status_));
    if (WEXITSTATUS(status_) != 0) return "exit code " + std::to_string(WEXITSTATUS(status_));
    return tasks_per_s() > 0 ? "" : "reported nothing";
  }

  double tasks_per_s() const {
    const std::size_t at = text_.rfind("pair-child ");
    return at == std::string::npos ? 0 : std::atof(text_.c_str() + at + std::strlen("pair-child "));
  }

 private:
  static void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), std::string("could not ") + what);
  }
  void drain() {
    char bytes[4096];
    for (pollfd p{output_, POLLIN, 0}; poll(&p, 1, 0) > 0 && (p.revents & POLLIN);) {
      const ssize_t n = read(output_, bytes, sizeof bytes);
      if (n <= 0) return;
      text_.append(bytes, static_cast<std::size_t>(n));
    }
  }

  pid_t pid_ = 0;
  int output_ = -1, status_ = 0;
  std::string text_;
};

}  // namespace

void bench_pair_of_programs(session& s) {
  const auto depth = static_cast<std::uint32_t>(s.number(0).value_or(s.sized(22u, 11u)));
  const double limit_s = 60;
  row r("two programs, each " + std::to_string(trees) + " trees of " +
        grouped(forest::tasks(depth)) + " tasks at a time");
  const auto began = clock::now();
  child first(s.where, depth), second(s.where, depth);
  progress shown("two programs");
  while (!(first.ended() & second.ended()) && microseconds_since(began) < limit_s * 1e6) {
    interrupt::sleep_for_seconds(0.005);
    shown.next();
  }
  const double seconds = microseconds_since(began) / 1e6;
  r.set("both_s", seconds)
      .set("first_tasks_per_s", first.tasks_per_s())
      .set("second_tasks_per_s", second.tasks_per_s())
      .check(first.wrong().empty(), "the first program: " + first.wrong())
      .check(second.wrong().empty(), "the second program: " + second.wrong())
      .at_most("both_s", limit_s, "neither hangs");
  s.out.add(r);
}

void bench_pair_child(session& s) {
  const auto depth = static_cast<std::uint32_t>(s.number(0).value_or(10));
  const runtime_options o = usual_options(s.where);
  forest forest(s.where, tree_kind::small, o);
  const double us = timed([&] {
    for (unsigned i = 0; i < trees; ++i) forest.plant(depth);
    await(forest.runtime());
  });
  const runtime_stats stats = settled_stats(forest.runtime());
  const std::uint64_t expected = trees * tool::forest::tasks(depth);
  if (stats.tasks != expected)
    throw std::runtime_error(grouped(stats.tasks) + " tasks ran, not " + grouped(expected));
  std::printf("pair-child %.0f\n", static_cast<double>(expected) * 1e6 / us);
}

}  // namespace grosr::tool
