// A file of an encrypted directory: a header of 4096 bytes, then its sectors, each encrypted by
// itself, the last one padded. docs/apps/cryptfs.md has the protocol of writes.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <system_error>

#include "cipher.hpp"

namespace grosr::cryptfs {

inline constexpr std::size_t most_request = 1 << 20;
inline constexpr std::size_t header_bytes = 4096;

/// Memory of one thread, which who encrypts reaches: a request, and what it becomes.
class workspace {
 public:
  explicit workspace(const device& d)
      : plain_(d, simt::space::pinned, room), encrypted_(d, simt::space::pinned, room) {}
  std::byte* plain() const { return plain_.data(); }
  std::byte* encrypted() const { return encrypted_.data(); }

 private:
  static constexpr std::size_t room = most_request + 2 * header_bytes;
  simt::buffer<std::byte> plain_, encrypted_;
};

/// What all that have a file open share.
struct file_state {
  std::shared_mutex lock;
  bool known = false;        ///< what follows was read
  bool trimmed = false;      ///< nothing lies behind the last sector
  std::uint64_t number = 0;  ///< random, its part of tweaks; 0: the file has no header yet
  std::uint64_t size = 0;
};

/// The file is none of this format: its header is another one, or damaged. Nothing is read of it or
/// written to it.
struct damaged_file : std::system_error {
  damaged_file() : std::system_error(EIO, std::generic_category()) {}
};

/// Reads and writes files of a volume. Thread-safe. `fd` is of the encrypted file, open for
/// reading, and for writing where that is done. Functions throw std::system_error with errno.
class file_format {
 public:
  file_format(cipher& by, std::uint32_t sector_bytes) : by_(by), sector_(sector_bytes) {}

  std::uint64_t size(file_state& f, int fd) const;
  /// At most most_request bytes. What it returns lies in the workspace.
  std::span<const std::byte> read(file_state& f, int fd, std::uint64_t offset, std::size_t bytes,
                                  const workspace& w) const;
  /// At most most_request bytes. `pinned`: they lie in memory that the cipher takes.
  void write(file_state& f, int fd, std::uint64_t offset, std::span<const std::byte> data,
             bool pinned, const workspace& w) const;
  void truncate(file_state& f, int fd, std::uint64_t size, const workspace& w) const;

 private:
  void know(file_state& f, int fd) const;
  void know_shared(file_state& f, int fd) const;
  void make_header(file_state& f, int fd) const;
  void set_size(file_state& f, int fd, std::uint64_t size) const;
  void before_growth(file_state& f, int fd, bool last_is_written, const workspace& w) const;
  void read_sectors(const file_state& f, int fd, std::uint64_t first, std::size_t count,
                    std::byte* through, std::byte* plain) const;
  void write_sectors(const file_state& f, int fd, std::uint64_t first, std::size_t count,
                     const std::byte* plain, std::byte* through) const;
  std::uint64_t sectors_of(std::uint64_t bytes) const { return (bytes + sector_ - 1) / sector_; }
  std::uint64_t place_of(std::uint64_t sector) const { return header_bytes + sector * sector_; }

  cipher& by_;
  const std::uint32_t sector_;
};

}  // namespace grosr::cryptfs
