// `cryptfs mount`.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "mounted.hpp"
#include "own_process.hpp"
#include "passphrase.hpp"

namespace grosr::cryptfs {
namespace {

struct asked {
  std::string directory, mountpoint, device = "auto", threads = "0";
  bool foreground = false, allow_other = false;
  int ready = -1;  ///< gets a byte when the file system is there
  passphrase_options passphrase;
};

mount_options options_of(const asked& a) {
  mount_options o{
      .directory = a.directory, .mountpoint = a.mountpoint, .allow_other = a.allow_other};
  o.threads = static_cast<unsigned>(tool::parse_number("--threads", a.threads, 0, 256));
  if (o.threads == 0) o.threads = std::clamp(std::thread::hardware_concurrency(), 2u, 8u);
  check_mount(o);
  return o;
}

/// Here: until somebody unmounts it, or Ctrl-C.
int serve(const asked& a) {
  const mount_options o = options_of(a);
  const volume v = open_key_file(a.directory, read_passphrase(a.passphrase, false));
  const auto by = make_cipher(a.device, v.key);
  mounted files(o, v.sector_bytes, *by);
  const std::string said =
      fmt::format("cryptfs: {} is mounted on {}; {} encrypts\n", tool::one_line(a.directory),
                  tool::one_line(a.mountpoint), by->text());
  if (a.ready >= 0) {
    // The terminal is the parent's, who tells it this, and ends.
    if (write(a.ready, said.data(), said.size()) < 0) return tool::exit_failed;
    close(a.ready);
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
  } else {
    fmt::print("{}", said);
    std::fflush(stdout);
  }
  while (!files.ended()) {
    if (tool::interrupt::requested()) {
      tool::interrupt::finish_without_limit();
      files.end();
      return tool::exit_interrupted;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  files.end();
  return files.failed() ? tool::exit_failed : tool::exit_ok;
}

/// A process of its own serves, which this program starts once more: what a GPU or a thread is for
/// does not survive a fork.
int serve_in_background(const asked& a) {
  options_of(a);  // what is wrong is said before a passphrase is asked for
  const secret passphrase = read_passphrase(a.passphrase, false);
  pipe_ends to_child, from_child;
  constexpr int passphrase_fd = 3, ready_fd = 4;
  std::vector<std::string> text{"cryptfs",
                                "mount",
                                "--foreground",
                                "--device",
                                a.device,
                                "--threads",
                                a.threads,
                                "--passphrase-fd",
                                std::to_string(passphrase_fd),
                                "--ready-fd",
                                std::to_string(ready_fd)};
  if (a.allow_other) text.push_back("--allow-other");
  text.insert(text.end(), {"--", a.directory, a.mountpoint});
  std::vector<char*> arguments;
  for (std::string& t : text) arguments.push_back(t.data());
  arguments.push_back(nullptr);
  // Above the numbers that they get, so that one does not take the other's place.
  const int from = fcntl(to_child.read_end, F_DUPFD_CLOEXEC, 10);
  const int to = fcntl(from_child.write_end, F_DUPFD_CLOEXEC, 10);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, from, passphrase_fd);
  posix_spawn_file_actions_adddup2(&actions, to, ready_fd);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
  pid_t child = 0;
  const int wrong =
      posix_spawn(&child, "/proc/self/exe", &actions, &how, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&how);
  close(from);
  close(to);
  pipe_ends::close_end(from_child.write_end);
  pipe_ends::close_end(to_child.read_end);
  if (wrong != 0)
    throw std::runtime_error(fmt::format("no process could be started ({})", std::strerror(wrong)));
  if (write(to_child.write_end, passphrase.data(), passphrase.size()) < 0 && errno != EPIPE)
    throw std::runtime_error(
        fmt::format("the process that mounts cannot be told ({})", std::strerror(errno)));
  pipe_ends::close_end(to_child.write_end);
  std::string said;
  char part[256];
  for (ssize_t n = 0; (n = read(from_child.read_end, part, sizeof part)) > 0;)
    said.append(part, static_cast<std::size_t>(n));
  if (!said.empty()) {
    fmt::print("{}", said);
    return tool::exit_ok;
  }
  int status = 0;
  waitpid(child, &status, 0);  // it has said why
  return WIFEXITED(status) ? WEXITSTATUS(status) : tool::exit_failed;
}

int mount(const asked& a) { return a.foreground ? serve(a) : serve_in_background(a); }

}  // namespace

void add_mount_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand("mount", "Mount an encrypted directory");
  auto a = std::make_shared<asked>();
  command->add_option("DIR", a->directory, "An encrypted directory")->required();
  command->add_option("MOUNTPOINT", a->mountpoint, "An empty directory")->required();
  command
      ->add_option("--device", a->device,
                   "What encrypts: cuda:N, host:N, openssl, or auto, which measures (auto)")
      ->type_name("D");
  command->add_option("--threads", a->threads, "That serve; 0: as many as processors, 2 to 8")
      ->type_name("N");
  command->add_flag("--foreground", a->foreground, "Serve in this process, until Ctrl-C");
  command->add_flag("--allow-other", a->allow_other, "Other users may use it, too");
  add_passphrase_options(*command, a->passphrase);
  command->add_option("--passphrase-fd", a->passphrase.descriptor)->group("");
  command->add_option("--ready-fd", a->ready)->group("");
  command->footer(
      "Examples:\n"
      "  ./cryptfs mount private.enc private\n"
      "  ./cryptfs mount private.enc private --device openssl --foreground\n"
      "  umount private                       ends it\n\n"
      "Exit code: 0; 1 if serving failed; 2 if nothing was mounted; 130 on Ctrl-C, SIGTERM or "
      "SIGHUP, which unmount.");
  command->callback([=, &chosen] { chosen = [=] { return mount(*a); }; });
}

}  // namespace grosr::cryptfs
