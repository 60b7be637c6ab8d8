#include "bytes.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/interrupt.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::gesture {
namespace {

/// Until there is something to read, or room. A signal goes to another thread, so it looks.
void wait_for(int file, short what) {
  for (;;) {
    tool::interrupt::check();
    pollfd p{file, what, 0};
    if (::poll(&p, 1, 100) != 0) return;
  }
}

}  // namespace

std::size_t read_bytes(int from, void* to, std::size_t bytes, const std::string& name) {
  std::size_t got = 0;
  while (got < bytes) {
    wait_for(from, POLLIN);
    const ssize_t n = ::read(from, static_cast<char*>(to) + got, bytes - got);
    if (n == 0) break;
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      throw error(errc::bad_input,
                  fmt::format("{}: cannot be read ({})", name, std::strerror(errno)));
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  return got;
}

void write_bytes(int to, const void* from, std::size_t bytes, const std::string& name) {
  std::size_t put = 0;
  while (put < bytes) {
    wait_for(to, POLLOUT);
    const ssize_t n = ::write(to, static_cast<const char*>(from) + put, bytes - put);
    if (n < 0 && errno != EINTR && errno != EAGAIN)
      throw error(errc::write_failed,
                  fmt::format("{}: cannot be written ({})", name, std::strerror(errno)));
    if (n > 0) put += static_cast<std::size_t>(n);
  }
}

}  // namespace grosr::gesture
