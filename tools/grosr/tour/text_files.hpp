// The text files under a folder, read batch by batch into memory that a device can read.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace grosr::tool {

/// What was found and what was left out.
struct text_census {
  std::uint64_t files = 0;       ///< text files read
  std::uint64_t bytes = 0;       ///< of them
  std::uint64_t binary = 0;      ///< a zero byte in the first 8 KB
  std::uint64_t unreadable = 0;  ///< files and folders
  std::uint64_t links = 0;       ///< symbolic links, never followed
  std::uint64_t special = 0;     ///< pipes, sockets, devices
};

/// A part of one file that lies in one piece; usually all of it.
struct text_segment {
  std::size_t offset;  ///< in the batch, a multiple of 512
  std::uint32_t bytes;
  unsigned char before;  ///< the byte in front of it in its file; a space at the beginning
  std::size_t file;      ///< which of paths()
};

/// Reads regular files only; follows no links. A file that is larger than what is left of a batch
/// goes on in the next one.
class text_files {
 public:
  /// Looks for files. Leaves on Ctrl-C.
  explicit text_files(const std::string& folder);
  ~text_files();
  text_files(const text_files&) = delete;

  /// Fills `memory` with the next files, each segment padded with spaces; at most `most` segments.
  /// Empty when there are no more.
  std::vector<text_segment> next(std::span<unsigned char> memory, std::size_t most);

  const std::vector<std::string>& paths() const { return paths_; }
  std::size_t done() const { return at_; }  ///< how many of paths() were read
  const text_census& census() const { return census_; }

 private:
  bool open_next();
  void close_file();

  std::vector<std::string> paths_;
  text_census census_;
  std::size_t at_ = 0;
  int file_ = -1;  // of paths_[at_], when it is open
  bool fresh_ = true;
  unsigned char before_ = ' ';
};

}  // namespace grosr::tool
