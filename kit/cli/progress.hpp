// A line on stderr that shows how far something is. Only on a terminal, and only after a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace grosr::tool {

/// Lives as long as the work; the innermost one shows. Not thread-safe.
class progress {
 public:
  explicit progress(std::string what, std::uint64_t steps = 0);
  ~progress();
  progress(const progress&) = delete;

  /// `done` of the steps are done. Draws at most ten times a second. Also where Ctrl-C is noticed:
  /// throws interrupt::interrupted.
  void at(std::uint64_t done);
  void next() { at(done_ + 1); }

  /// Where something takes long in one piece: shows the time that passes, and notices Ctrl-C.
  static void pulse();

  /// Removes the line, before something else is printed.
  static void clear();

 private:
  void draw();
  std::string what_;
  std::uint64_t steps_, done_ = 0;
  std::chrono::steady_clock::time_point began_, drawn_;
  progress* outer_;
};

}  // namespace grosr::tool
