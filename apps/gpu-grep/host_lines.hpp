// Lines that the host reads itself: those too long for a window, and files with more matching lines
// than the device had room for.
#pragma once

#include "search.hpp"

namespace grosr::grep {

/// The line at `offset` of an open file, and whether it matches.
bool read_line(int file, std::uint64_t offset, const line_automaton_ref& lines, std::string& text);

/// The `bytes` bytes at `offset`; fewer when the file has become shorter.
std::string read_text(int file, std::uint64_t offset, std::uint32_t bytes);

/// All of a file, as a device would search it.
file_result search_on_host(const tool::file_list& list, std::uint32_t file,
                           const line_automaton_ref& lines, wanted what, bool numbers);

/// Opens a file of the list to read; -1 and errno.
int open_file(const tool::file_list& list, std::uint32_t file);

}  // namespace grosr::grep
