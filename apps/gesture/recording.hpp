// Frames of depth of both cameras, in memory, and as a file or a pipe has them.
//
// The bytes: a file_header, then the frames, each of which is the left camera's rows and the right
// one's. All numbers are little-endian.
#pragma once

#include <string>
#include <vector>

#include "geometry.hpp"

namespace grosr::gesture {

inline constexpr std::uint32_t least_side = 16, most_side = 2048, most_rate = 1000;
inline constexpr std::size_t most_recorded_bytes = std::size_t{4} << 30;

struct recording {
  frame_shape shape;
  std::uint32_t frames = 0, rate = 0;  ///< `rate`: frames a second
  std::vector<std::uint16_t> depths;

  const std::uint16_t* frame(std::size_t i) const {
    return depths.data() + i * cameras * shape.pixels();
  }
};

struct file_header {
  static constexpr std::uint64_t right_magic = 0x3154'5345'4753'5247;  // "GRSGEST1"
  std::uint64_t magic = right_magic;
  std::uint32_t cameras = gesture::cameras, width = 0, height = 0, frames = 0, rate = 0,
                reserved = 0;
};

/// Reads a file to its end; "-" is standard input. Throws error(bad_input), naming the file and
/// what is wrong with it.
recording read_recording(const std::string& path);
/// Writes a new file, which is removed again where that fails; "-" is standard output. Throws
/// error(write_failed).
void write_recording(const recording& r, const std::string& path);
/// To a descriptor. Throws error(write_failed), naming `name`.
void write_recording(const recording& r, int to, const std::string& name);

}  // namespace grosr::gesture
