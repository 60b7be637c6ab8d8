// A file with known content in the page cache, for benches that read.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "grosr/simt/error.hpp"
#include "work/calls.hpp"

namespace grosr::tool {

/// Lies in the folder for temporary files, and has no name there.
class sample_file {
 public:
  explicit sample_file(std::uint64_t bytes) : bytes_(bytes) {
    const char* const asked = std::getenv("TMPDIR");
    const std::string folder = asked != nullptr && *asked != 0 ? asked : "/tmp";
    std::string name = folder + "/grosr.XXXXXX";
    file_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (file_ < 0)
      throw error(errc::invalid_option, "make a file of " + std::to_string(bytes) + " bytes as " +
                                            name +
                                            ": not possible; let TMPDIR name a folder with room");
    ::unlink(name.c_str());
    std::vector<std::uint64_t> some(1 << 17);
    for (std::uint64_t at = 0; at < bytes;) {
      for (std::size_t i = 0; i < some.size(); ++i) some[i] = word_at(at + 8 * i);
      const std::uint64_t now = std::min<std::uint64_t>(bytes - at, some.size() * 8);
      if (::pwrite(file_, some.data(), now, static_cast<off_t>(at)) != static_cast<ssize_t>(now)) {
        ::close(file_);
        throw error(errc::out_of_memory, "write " + std::to_string(bytes) + " bytes below " +
                                             folder +
                                             ": no room; let TMPDIR name a folder with room");
      }
      at += now;
    }
  }
  ~sample_file() { ::close(file_); }
  sample_file(const sample_file&) = delete;

  /// Has what is read next come from the disk, and no more of it than is asked for.
  void forget() const {
    ::fdatasync(file_);
    ::posix_fadvise(file_, 0, 0, POSIX_FADV_DONTNEED);
    ::posix_fadvise(file_, 0, 0, POSIX_FADV_RANDOM);
  }

  int descriptor() const { return file_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::uint64_t bytes_;
  int file_;
};

}  // namespace grosr::tool
