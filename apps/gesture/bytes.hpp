// Whole pieces of bytes through files and pipes, of which Ctrl-C is noticed.
#pragma once

#include <cstddef>
#include <string>

namespace grosr::gesture {

/// Waits for so many bytes; returns how many came, fewer only at the end. Throws error(bad_input),
/// naming `name`, where reading fails; interrupted.
std::size_t read_bytes(int from, void* to, std::size_t bytes, const std::string& name);
/// Throws error(write_failed), naming `name`; interrupted.
void write_bytes(int to, const void* from, std::size_t bytes, const std::string& name);

}  // namespace grosr::gesture
