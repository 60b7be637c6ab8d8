// Searching files for lines, on a device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "files/file_list.hpp"
#include "grosr/simt/device.hpp"
#include "line_automaton.hpp"

namespace grosr::grep {

enum class wanted { lines, counts };  ///< counts do for -c and -l

struct found_line {
  std::uint64_t number;  ///< from 1; 0 when not asked for
  std::string text;      ///< without its end
};

/// What there is to say about one file.
struct file_result {
  int error = 0;
  bool binary = false;  ///< it has a zero byte
  std::uint64_t matches = 0;
  std::vector<found_line> lines;
};

/// Owns the server and the memory that searching takes.
class searcher {
 public:
  searcher(const tool::file_list& list, const line_automaton& lines, const device& d);
  ~searcher();

  /// Searches these files of the list; results in their order. Leaves on Ctrl-C.
  std::vector<file_result> search(std::span<const std::uint32_t> files, wanted what, bool numbers);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::grep
