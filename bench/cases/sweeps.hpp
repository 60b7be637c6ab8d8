// Reading a file into device memory, every byte once, by callers of different sizes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "work/calls.hpp"

namespace grosr::tool {

/// The maker of a call: each lane, each block, or the whole grid.
enum class read_by { lane, block, grid };

struct whole_reading {
  int file;
  std::uint64_t bytes;  ///< of the file, a multiple of threads * lane_bytes
  std::uint32_t
      lane_bytes;    ///< that each lane stands for: a block of n lanes reads n times as much
  unsigned threads;  ///< lanes of a block
  read_by who;
};

/// A place for a whole file in device memory.
class whole_reader {
 public:
  whole_reader(const device& d, const sys::server& s, std::uint64_t most_bytes);
  ~whole_reader();
  /// Calls that returned another number of bytes are wrong; so are words that are not those of
  /// word_at(), if `check`: looked at after the time was taken.
  call_traffic read(const whole_reading& r, bool check);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// A call that holds its service thread, as a disk would. The host installs it.
struct sleeper {
  static constexpr std::uint16_t number = 1;
  static constexpr bool quick = true;  // so that it does
  long operator()(long us) const {
    std::this_thread::sleep_for(std::chrono::microseconds(us));
    return us;
  }
};

/// Each warp of the grid makes `turns` calls of a sleeper, of 100 us.
call_traffic call_sleeper(const device& d, const sys::server& s, simt::shape grid,
                          std::uint32_t turns);

}  // namespace grosr::tool
