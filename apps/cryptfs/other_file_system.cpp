#include "other_file_system.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "mounted.hpp"

namespace grosr::cryptfs {
namespace {

namespace fs = std::filesystem;

/// Runs a program without a terminal; its exit code, -1 where it is not installed.
int run(std::vector<std::string> words, const std::string& input = "/dev/null") {
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
  for (const int fd : {1, 2})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_WRONLY, 0);
  // Signals that this program blocks end what it starts.
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK);
  pid_t child = 0;
  const int wrong = posix_spawnp(&child, arguments[0], &actions, &how, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&how);
  if (wrong != 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

class own final : public file_system {
 public:
  own(const std::string& name, const std::string& folder,
      const std::function<std::unique_ptr<cipher>(const secret&)>& make)
      : file_system(name, folder) {
    const secret passphrase(std::string_view("bench"));
    make_key_file(directory_, 4096, passphrase);
    volume_ = open_key_file(directory_, passphrase);
    by_ = make(volume_.key);
  }
  ~own() override { unmount(); }

  void mount() override {
    mount_options o{.directory = directory_, .mountpoint = mountpoint_};
    o.threads = std::clamp(std::thread::hardware_concurrency(), 2u, 8u);
    mounted_ = std::make_unique<mounted>(o, volume_.sector_bytes, *by_);
  }
  void unmount() noexcept override { mounted_.reset(); }

 private:
  volume volume_;
  std::unique_ptr<cipher> by_;
  std::unique_ptr<mounted> mounted_;
};

class other final : public file_system {
 public:
  /// What `make` and `mount` begin with; directories follow.
  other(const std::string& name, const std::string& folder, std::vector<std::string> make,
        std::vector<std::string> mount)
      : file_system(name, folder), mount_(std::move(mount)), passphrase_(folder + "/passphrase") {
    std::ofstream(passphrase_) << "bench\n";
    for (std::string& w : mount_)
      if (w == "PASSPHRASE") w = passphrase_;
    if (!make.empty()) {
      for (std::string& w : make)
        if (w == "PASSPHRASE") w = passphrase_;
      make.push_back(directory_);
      if (run(make) != 0) throw std::runtime_error(name + " made no encrypted directory");
    }
  }
  ~other() override { unmount(); }

  void mount() override {
    auto words = mount_;
    words.insert(words.end(), {directory_, mountpoint_});
    if (run(words, passphrase_) != 0) throw std::runtime_error(name_ + " did not mount");
    is_mounted_ = true;
  }
  void unmount() noexcept override {
    for (int i = 0; is_mounted_ && i < 100; ++i) {
      is_mounted_ =
          run({"umount", mountpoint_}) != 0 && run({"fusermount3", "-u", mountpoint_}) != 0;
      if (is_mounted_) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

 private:
  std::vector<std::string> mount_;
  const std::string passphrase_;
  bool is_mounted_ = false;
};

bool is_installed(const char* program) { return run({program, "--version"}) >= 0; }

}  // namespace

file_system::file_system(std::string name, const std::string& folder)
    : name_(std::move(name)), directory_(folder + "/encrypted"), mountpoint_(folder + "/mounted") {
  fs::create_directories(directory_);
  fs::create_directories(mountpoint_);
}

std::unique_ptr<file_system> own_file_system(
    const std::string& name, const std::string& folder,
    const std::function<std::unique_ptr<cipher>(const secret&)>& make) {
  return std::make_unique<own>(name, folder, make);
}

std::vector<std::unique_ptr<file_system>> other_file_systems(const std::string& folder) {
  std::vector<std::unique_ptr<file_system>> all;
  if (is_installed("gocryptfs"))
    all.push_back(std::make_unique<other>(
        "gocryptfs", folder + "/gocryptfs",
        std::vector<std::string>{"gocryptfs", "-init", "-q", "-plaintextnames", "-scryptn", "10",
                                 "-passfile", "PASSPHRASE"},
        std::vector<std::string>{"gocryptfs", "-q", "-passfile", "PASSPHRASE"}));
  if (is_installed("encfs"))
    all.push_back(
        std::make_unique<other>("EncFS", folder + "/encfs", std::vector<std::string>{},
                                std::vector<std::string>{"encfs", "--standard", "--stdinpass"}));
  return all;
}

}  // namespace grosr::cryptfs
