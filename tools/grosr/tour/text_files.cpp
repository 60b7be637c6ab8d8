#include "tour/text_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "work/words.hpp"

namespace grosr::tool {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t binary_probe = 8192;

std::size_t padded(std::size_t bytes) {
  return (bytes + text_padding - 1) / text_padding * text_padding;
}

/// Reads until `bytes` are there or the file ends; -1 on an error.
ssize_t read_fully(int file, unsigned char* to, std::size_t bytes) {
  std::size_t got = 0;
  while (got < bytes) {
    interrupt::check();
    const ssize_t n = read(file, to + got, std::min<std::size_t>(bytes - got, 16u << 20));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

}  // namespace

text_files::text_files(const std::string& folder) {
  progress shown("looking for files");
  std::vector<fs::path> folders{folder};
  while (!folders.empty()) {
    const fs::path at = std::move(folders.back());
    folders.pop_back();
    std::error_code bad;
    fs::directory_iterator it(at, bad);
    for (; !bad && it != fs::directory_iterator(); it.increment(bad)) {
      std::error_code unknown;
      switch (it->symlink_status(unknown).type()) {
        case fs::file_type::regular:
          paths_.push_back(it->path().string());
          break;
        case fs::file_type::directory:
          folders.push_back(it->path());
          break;
        case fs::file_type::symlink:
          ++census_.links;
          break;
        case fs::file_type::none:
        case fs::file_type::not_found:  // gone since it was listed
          ++census_.unreadable;
          break;
        default:
          ++census_.special;
      }
    }
    if (bad) ++census_.unreadable;
    shown.at(paths_.size());
  }
  std::sort(paths_.begin(), paths_.end());
}

text_files::~text_files() {
  if (file_ >= 0) close(file_);
}

// Opens paths_[at_]; what cannot be opened is counted and passed over.
bool text_files::open_next() {
  for (; at_ < paths_.size(); ++at_) {
    file_ = open(paths_[at_].c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat found {};
    if (file_ >= 0 && fstat(file_, &found) == 0 && S_ISREG(found.st_mode)) {
      fresh_ = true;
      before_ = ' ';
      return true;
    }
    if (file_ >= 0) close(file_);
    file_ = -1;
    ++census_.unreadable;
  }
  return false;
}

void text_files::close_file() {
  close(file_);
  file_ = -1;
  ++at_;
}

std::vector<text_segment> text_files::next(std::span<unsigned char> memory, std::size_t most) {
  std::vector<text_segment> segments;
  std::size_t used = 0;
  while (segments.size() < most) {
    const std::size_t room = std::min<std::size_t>(memory.size() - used, std::size_t{1} << 30);
    if (room < 2 * binary_probe) break;  // enough to tell text from binary, in one piece
    if (file_ < 0 && !open_next()) break;
    unsigned char* to = memory.data() + used;
    ssize_t got = read_fully(file_, to, fresh_ ? binary_probe : room);
    if (got > 0 && fresh_) {
      if (std::memchr(to, 0, static_cast<std::size_t>(got)) != nullptr) {
        ++census_.binary;
        close_file();
        continue;
      }
      const ssize_t more = read_fully(file_, to + got, room - static_cast<std::size_t>(got));
      got = more < 0 ? -1 : got + more;
    }
    if (got < 0) {
      ++census_.unreadable;
      close_file();
      continue;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (fresh_) ++census_.files;
    fresh_ = false;
    census_.bytes += bytes;
    if (bytes > 0) {
      segments.push_back({used, static_cast<std::uint32_t>(bytes), before_, at_});
      before_ = to[bytes - 1];
      const std::size_t end = padded(bytes);
      std::fill(to + bytes, to + end, static_cast<unsigned char>(' '));
      used += end;
    }
    if (bytes < room) close_file();  // it ended
  }
  return segments;
}

}  // namespace grosr::tool
