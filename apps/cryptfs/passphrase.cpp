#include "passphrase.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"

namespace grosr::cryptfs {
namespace {

using tool::usage_error;

constexpr std::size_t longest = 1024;

/// Up to the end of the line, or of what there is.
secret read_line(int fd, const std::string& from) {
  char text[longest + 1];
  std::size_t n = 0;
  while (n < sizeof text) {
    // Ctrl-C is noticed: the signals are blocked.
    pollfd p{fd, POLLIN, 0};
    if (poll(&p, 1, 100) == 0) {
      tool::interrupt::check();
      continue;
    }
    const ssize_t got = read(fd, text + n, 1);
    if (got < 0)
      throw usage_error(fmt::format("{}: cannot be read ({})", from, std::strerror(errno)));
    if (got == 0 || text[n] == '\n') break;
    ++n;
  }
  secret s(std::string_view(text, n));
  OPENSSL_cleanse(text, sizeof text);
  if (n > longest)
    throw usage_error(fmt::format("{}: the passphrase is longer than {} bytes", from, longest));
  if (n == 0) throw usage_error(fmt::format("{}: the passphrase is empty; choose one", from));
  return s;
}

/// The terminal shows nothing while one of these is there.
class no_echo {
 public:
  explicit no_echo(int fd) : fd_(fd) {
    good_ = tcgetattr(fd, &before_) == 0;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    if (good_) tcsetattr(fd, TCSAFLUSH, &now);
  }
  ~no_echo() {
    if (good_) tcsetattr(fd_, TCSAFLUSH, &before_);
  }
  no_echo(const no_echo&) = delete;

 private:
  int fd_;
  bool good_;
  termios before_{};
};

secret ask(int terminal, const char* what) {
  const no_echo quiet(terminal);  // first: what is typed ahead of it would be dropped
  tool::say(what);
  secret s = read_line(terminal, "the terminal");
  tool::say("\n");
  return s;
}

bool alike(const secret& a, const secret& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

secret from_terminal(bool twice) {
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (terminal < 0)
    throw usage_error(
        fmt::format("there is no terminal to ask for the passphrase; give "
                    "--passphrase-file, or set {}",
                    passphrase_variable));
  secret first = ask(terminal, "Passphrase: ");
  const bool same = !twice || alike(first, ask(terminal, "The same again: "));
  close(terminal);
  if (!same) throw usage_error("the passphrases differ; try again");
  return first;
}

/// It is not there any more then: neither for what is started, nor in /proc/PID/environ, which
/// shows this memory.
std::optional<secret> taken_from_environment() {
  char* text = std::getenv(passphrase_variable);
  if (!text) return std::nullopt;
  secret s{std::string_view(text)};
  OPENSSL_cleanse(text, s.size());
  unsetenv(passphrase_variable);
  return s;
}

}  // namespace

void add_passphrase_options(CLI::App& command, passphrase_options& o) {
  command
      .add_option("--passphrase-file", o.file,
                  fmt::format("Its first line is the passphrase; without, {} is, or the terminal "
                              "is asked",
                              passphrase_variable))
      ->type_name("FILE");
}

secret read_passphrase(const passphrase_options& o, bool twice) {
  std::optional<secret> given = taken_from_environment();
  if (o.descriptor >= 0) return read_line(o.descriptor, "the parent process");
  if (o.file) {
    const std::string name = tool::one_line(*o.file);
    const int fd = open(o.file->c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      throw usage_error(
          fmt::format("--passphrase-file {}: cannot be read ({}); name a file whose "
                      "first line is the passphrase",
                      name, std::strerror(errno)));
    const struct closer {
      int fd;
      ~closer() { close(fd); }
    } at_end{fd};
    return read_line(fd, fmt::format("--passphrase-file {}", name));
  }
  if (given) {
    secret s = std::move(*given);
    if (s.empty() || s.size() > longest || std::memchr(s.data(), '\n', s.size()) != nullptr)
      throw usage_error(
          fmt::format("{} is to be one line of 1 to {} bytes", passphrase_variable, longest));
    return s;
  }
  return from_terminal(twice);
}

}  // namespace grosr::cryptfs
