#include "file_client.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "cli/interrupt.hpp"

namespace grosr::cryptfs {
namespace {

/// The process, which is ended, if it must be, by the destructor.
class client {
 public:
  client(direction how, const std::string& path, const shared_memory& content)
      : path_(path),
        pid_(start_own({"client", how == direction::write ? "--write" : "--read", "--", path},
                       {to_.read_end, from_.write_end, content.fd()})) {
    pipe_ends::close_end(to_.read_end);
    pipe_ends::close_end(from_.write_end);
  }
  ~client() {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  client(const client&) = delete;

  /// The next line that it says.
  std::string line() {
    for (std::string said;;) {
      tool::interrupt::check();
      pollfd p{from_.read_end, POLLIN, 0};
      if (poll(&p, 1, 20) <= 0) continue;
      char c = 0;
      const ssize_t n = read(from_.read_end, &c, 1);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) throw std::runtime_error("the process that uses " + path_ + " ended early");
      if (c == '\n') return said;
      said += c;
    }
  }
  void go() {
    if (write(to_.write_end, "", 1) != 1)
      throw std::runtime_error("the process that uses " + path_ + " cannot be told to begin");
  }
  void ended() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    if (status != 0) throw std::runtime_error("the process that uses " + path_ + " failed");
  }

 private:
  const std::string path_;
  pipe_ends to_, from_;
  pid_t pid_;
};

}  // namespace

transfer transfer_file(direction how, const std::string& path, const shared_memory& content,
                       const std::function<std::uint64_t()>& count) {
  client c(how, path, content);
  c.line();  // it is ready
  transfer t;
  const std::uint64_t before = count();
  c.go();
  t.us = std::stod(c.line());
  t.counted = count() - before;
  t.right = c.line() == "right";
  c.ended();
  return t;
}

}  // namespace grosr::cryptfs
