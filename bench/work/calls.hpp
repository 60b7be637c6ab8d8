// Traffic of system calls: kernels that do nothing but call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grosr/simt/launch.hpp"
#include "grosr/sys/server.hpp"
#include "measure/samples.hpp"

namespace grosr::tool {

/// The maker of the calls of a traffic.
enum class called_by { lane, warp, block };

/// What a launch did. The time is the host's, from launch to end.
struct call_traffic {
  double us = 0;
  std::uint64_t calls = 0;
  std::uint64_t wrong = 0;  ///< calls with another result than the right one
};

/// Times of `n` no-op calls of one warp, by the device's clock, with a pause of `pause_us` before
/// each.
samples time_calls(const device& d, const sys::server& s, unsigned n, double pause_us);

/// Each warp (lane) of the grid makes `turns` calls: no-op ones or getppid.
call_traffic call_nothing(const device& d, const sys::server& s, simt::shape grid, called_by who,
                          std::uint32_t turns);
call_traffic call_getppid(const device& d, const sys::server& s, simt::shape grid,
                          std::uint32_t turns);

/// Reading a file into device memory, piece by piece, by pread.
struct file_reading {
  int file;
  std::uint64_t bytes;  ///< of the file
  std::uint32_t piece;  ///< that a call reads
  called_by who;
  std::uint32_t rounds = 1;  ///< how often the file is read
};

/// Blocks take pieces in turn. The bytes that they read lie in `to`, a place for each caller.
class file_reader {
 public:
  file_reader(const device& d, const sys::server& s, simt::shape grid);
  ~file_reader();
  /// Calls that returned another number of bytes than there are, or brought other bytes than
  /// byte_of() says, are wrong; bytes are checked in a launch of its own after the timed one if
  /// `check`.
  call_traffic read(const file_reading& r, bool check);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The content of files that are read: 8 bytes at 8-byte offsets.
constexpr std::uint64_t word_at(std::uint64_t offset) { return offset * 0x9e3779b97f4a7c15ull; }

}  // namespace grosr::tool
