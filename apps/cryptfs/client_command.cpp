// `cryptfs client`, which `bench` starts: a program that writes or reads a file.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "commands.hpp"
#include "file_format.hpp"
#include "measure/samples.hpp"
#include "own_process.hpp"

namespace grosr::cryptfs {
namespace {

constexpr int content_fd = 3;

struct asked {
  std::string path;
  bool write = false, read = false;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(fmt::format("{} failed ({})", what, std::strerror(errno)));
}

/// The file in requests of 1 MB, from opening to closing.
template <class F>
void in_requests(const std::string& path, int flags, std::size_t all, F request) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) fail("opening " + path);
  for (std::size_t at = 0; at < all;) {
    tool::interrupt::check();
    const ssize_t n = request(fd, at, std::min(most_request, all - at));
    if (n <= 0) fail("a request for " + path);
    at += static_cast<std::size_t>(n);
  }
  if (close(fd) != 0) fail("closing " + path);
}

void say_line(const std::string& text) {
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

int client(const asked& a) {
  end_with_parent();
  const shared_memory content = shared_memory::of(content_fd);
  std::vector<char> got(content.size(), 1);
  // Read once, so that the pages are in this process's tables.
  if (a.write) std::memcpy(got.data(), content.data(), content.size());
  say_line("ready");
  char go = 0;
  if (read(STDIN_FILENO, &go, 1) != 1) return tool::exit_failed;  // nobody waits for it
  const double us = tool::timed([&] {
    if (a.write)
      in_requests(
          a.path, O_WRONLY | O_CREAT | O_EXCL, content.size(),
          [&](int fd, std::size_t at, std::size_t n) { return write(fd, content.data() + at, n); });
    else
      in_requests(a.path, O_RDONLY, content.size(), [&](int fd, std::size_t at, std::size_t n) {
        return read(fd, got.data() + at, n);
      });
  });
  say_line(fmt::format("{}", us));
  say_line(std::memcmp(got.data(), content.data(), content.size()) == 0 ? "right" : "wrong");
  return tool::exit_ok;
}

}  // namespace

void add_client_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand("client", "Writes or reads a file for bench")->group("");
  auto a = std::make_shared<asked>();
  command->add_option("PATH", a->path)->required();
  command->add_flag("--write", a->write);
  command->add_flag("--read", a->read)->excludes("--write");
  command->callback([=, &chosen] { chosen = [=] { return client(*a); }; });
}

}  // namespace grosr::cryptfs
