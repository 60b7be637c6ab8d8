// Tests of shared ports: a folder for their names, a graph to share, and other processes.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "flow/functions.hpp"
#include "grosr/flow/remote_port.hpp"
#include "grosr/flow/shared_port.hpp"

namespace grosr::flow::tested {

/// A folder that only this user reaches, and that goes with the object.
class own_folder {
 public:
  own_folder() {
    std::string name = "/tmp/grosr-ports-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~own_folder() { std::filesystem::remove_all(path_); }
  own_folder(const own_folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// This test program once more, which plays a part of `shared_port_peer` and says lines.
class peer {
 public:
  peer(const std::string& part, const std::string& folder) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    hears_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], says_at);
    std::vector<std::string> set = {"GROSR_PORT_PEER=" + part, "GROSR_PORT_FOLDER=" + folder};
    std::vector<char*> environment;
    for (char** v = environ; *v != nullptr; ++v) environment.push_back(*v);
    for (std::string& v : set) environment.push_back(v.data());
    environment.push_back(nullptr);
    std::string program = std::filesystem::read_symlink("/proc/self/exe");
    std::string filter = "--gtest_filter=shared_port_peer.*", brief = "--gtest_brief=1";
    char* arguments[] = {program.data(), filter.data(), brief.data(), nullptr};
    if (posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environment.data()) != 0)
      std::abort();
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
  }
  ~peer() {
    if (pid_ > 0) kill();
    close(hears_);
  }
  peer(const peer&) = delete;

  pid_t pid() const { return pid_; }
  /// The next line that it says; empty when it has ended.
  std::string hear() const {
    std::string line;
    for (char c; read(hears_, &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    wait();
  }
  /// Its exit status.
  int wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// In the other process.
  static void say(const std::string& line) {
    const std::string all = line + "\n";
    if (write(says_at, all.data(), all.size()) < 0) std::abort();
  }
  /// In the other process, if this is one: the part that it is to play.
  static void play(
      const std::map<std::string, std::function<void(const remote_port_options&)>>& parts) {
    if (const char* const part = std::getenv("GROSR_PORT_PEER"))
      parts.at(part)(
          {.connect_within = std::chrono::seconds(60), .folder = std::getenv("GROSR_PORT_FOLDER")});
  }

 private:
  static constexpr int says_at = 77;
  pid_t pid_ = 0;
  int hears_ = -1;
};

/// Blocks of words go through a function that gives each word times two.
struct doubler {
  explicit doubler(const block_template& t, unsigned capacity = 1, const graph_options& o = {})
      : e(on(device(), 1)),
        g(e, o),
        n(g.host("double",
                 [](in<word> a, out<word> b) {
                   for (std::size_t i = 0; i < a.count; ++i) b[i] = a[i] * 2;
                   b.set_count(a.count);
                 },
                 {{"a", t}, {"b", t}})),
        from(g.source<word>(n["a"], {.capacity = capacity})),
        to(g.sink<word>(n["b"], {.capacity = capacity})) {
    g.compile();
  }
  executor e;
  graph g;
  node n;
  source<word> from;
  sink<word> to;
};

template <class Condition>
void yield_until(const Condition& c) {
  while (!c()) std::this_thread::yield();
}

}  // namespace grosr::flow::tested
