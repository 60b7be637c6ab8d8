// A process that writes or reads one file, as users of a file system do. It is not the process that
// serves: one that is killed while it waits for itself never ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "own_process.hpp"

namespace grosr::cryptfs {

/// What a client has done.
struct transfer {
  double us = 0;              ///< from opening to closing, in requests of 1 MB
  bool right = true;          ///< what it read is the content
  std::uint64_t counted = 0;  ///< meanwhile
};

enum class direction : std::uint8_t { write, read };

/// Has a client write a new file of this content, or read one and compare it. `count`: of something
/// that goes on meanwhile. Throws std::runtime_error, and what Ctrl-C throws.
transfer transfer_file(direction how, const std::string& path, const shared_memory& content,
                       const std::function<std::uint64_t()>& count);

}  // namespace grosr::cryptfs
