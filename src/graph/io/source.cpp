// Reading and inflating.
#include "graph/io/source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "graph/io/words.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::graphs {
namespace {

constexpr std::size_t head_bytes = 64 << 10, input_bytes = 256 << 10;
constexpr std::size_t read_at_once = std::size_t{1} << 30;  // zlib and read() count in 32 bits

}  // namespace

struct source::inflater {
  inflater() : input(input_bytes) {}
  ~inflater() { inflateEnd(&z); }

  z_stream z{};
  std::vector<char> input;
  bool in_member = false, end = false;
  std::uint64_t members = 0, inflated = 0;
};

source::source(const std::string& path, host_threads& threads)
    : name_(one_line(path)), threads_(threads) {
  const auto refuse = [&](std::string_view what) {
    if (fd_ >= 0) close(fd_);
    throw error(errc::bad_input, fmt::format("{}: {}", name_, what));
  };
  fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0 || path.find('\0') != std::string::npos)
    refuse(fmt::format("{}; give a file with a graph, or a generator such as kronecker:20",
                       std::strerror(fd_ < 0 ? errno : EINVAL)));
  struct stat s {};
  if (fstat(fd_, &s) != 0) refuse(std::strerror(errno));
  if (S_ISDIR(s.st_mode)) refuse("is a directory; give a file with a graph");
  regular_ = S_ISREG(s.st_mode);
  file_bytes_ = regular_ ? static_cast<std::uint64_t>(s.st_size) : 0;
  try {
    head_.resize(head_bytes);
    head_.resize(read_file(head_.data(), head_.size()));
    if (head_.starts_with("\x1f\x8b")) start_inflating();
  } catch (...) {
    close(fd_);
    throw;
  }
}

source::~source() { close(fd_); }

/// The bytes read so far are compressed; the bytes they inflate to become the new head.
void source::start_inflating() {
  auto i = std::make_unique<inflater>();
  if (inflateInit2(&i->z, 15 + 16) != Z_OK) throw std::bad_alloc();
  std::copy(head_.begin(), head_.end(), i->input.begin());
  i->z.next_in = reinterpret_cast<Bytef*>(i->input.data());
  i->z.avail_in = static_cast<uInt>(head_.size());
  i->in_member = true;
  inflater_ = std::move(i);
  head_.resize(head_bytes);
  head_.resize(read_inflated(head_.data(), head_.size()));
}

std::size_t source::read(char* to, std::size_t n) {
  const std::size_t known = std::min(n, head_.size() - head_read_);
  std::memcpy(to, head_.data() + head_read_, known);
  head_read_ += known;
  if (known == n) return n;
  return known +
         (inflater_ ? read_inflated(to + known, n - known) : read_file(to + known, n - known));
}

std::size_t source::read_file(char* to, std::size_t n) {
  std::size_t got = 0;
  while (got < n) {
    threads_.look();
    pollfd there{fd_, POLLIN, 0};  // a pipe may wait for long
    if (!regular_ && poll(&there, 1, 50) == 0) continue;
    const ssize_t r = ::read(fd_, to + got, std::min(n - got, read_at_once));
    if (r == 0) break;
    if (r < 0 && errno == EINTR) continue;
    if (r < 0)
      throw error(errc::bad_input,
                  fmt::format("{}: reading it failed: {}", name_, std::strerror(errno)));
    got += static_cast<std::size_t>(r);
    bytes_read_.fetch_add(static_cast<std::uint64_t>(r), std::memory_order_relaxed);
  }
  return got;
}

std::size_t source::read_inflated(char* to, std::size_t n) {
  inflater& i = *inflater_;
  std::size_t got = 0;
  const auto refuse = [&](std::string_view what) {
    throw error(errc::bad_input, fmt::format("{}: {} after {} inflated bytes; get the file again",
                                             name_, what, grouped(i.inflated + got)));
  };
  while (got < n && !i.end) {
    if (i.z.avail_in == 0) {
      i.z.next_in = reinterpret_cast<Bytef*>(i.input.data());
      i.z.avail_in = static_cast<uInt>(read_file(i.input.data(), i.input.size()));
      if (i.z.avail_in == 0) {
        if (i.in_member) refuse("the gzip stream is cut off");
        i.end = true;
        break;
      }
    }
    if (!i.in_member) {  // a file may have several members, and zeros behind them
      if (*i.z.next_in == 0) {
        ++i.z.next_in;
        --i.z.avail_in;
        continue;
      }
      if (inflateReset(&i.z) != Z_OK) throw std::bad_alloc();
      i.in_member = true;
    }
    i.z.next_out = reinterpret_cast<Bytef*>(to + got);
    const auto room = static_cast<uInt>(std::min(n - got, read_at_once));
    i.z.avail_out = room;
    const int result = inflate(&i.z, Z_NO_FLUSH);
    got += room - i.z.avail_out;
    if (result == Z_STREAM_END)
      i.in_member = false;
    else if (result == Z_MEM_ERROR)
      throw std::bad_alloc();
    else if (result != Z_OK && result != Z_BUF_ERROR)
      refuse(fmt::format("the gzip stream is damaged ({})",
                         i.z.msg != nullptr ? i.z.msg : "no message"));
  }
  i.inflated += got;
  return got;
}

}  // namespace grosr::graphs
