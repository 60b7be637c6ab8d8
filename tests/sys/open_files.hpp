// How many descriptors the program has open.
#pragma once

#include <cstddef>
#include <filesystem>
#include <iterator>

namespace grosr::sys {

inline std::size_t open_files() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

}  // namespace grosr::sys
