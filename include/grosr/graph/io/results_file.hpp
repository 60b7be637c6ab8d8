// Results as lines of text, their fields separated by blanks.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "grosr/graph/host_work.hpp"

namespace grosr::graphs {

class output_file;

/// A file that is known to be writable before there are results. What its path leads to stays what
/// it is until all of them are written: see docs/guide/graphs.md.
class results_file {
 public:
  /// `asked`: how errors begin, such as "--output x.txt". `watch` is called now
  /// and then while it is written. Throws error(write_failed).
  results_file(std::string asked, const std::string& path, work_watcher watch = {});
  ~results_file();
  results_file(const results_file&) = delete;

  /// The next field of the line. Floating point with as many digits as tell it from its neighbours.
  template <class Number>
  requires std::integral<Number> || std::floating_point<Number>
  void field(Number n) {
    begin_field();
    used_ = static_cast<std::size_t>(
        std::to_chars(buffer_.data() + used_, buffer_.data() + buffer_.size(), n).ptr -
        buffer_.data());
  }
  void no_field();  ///< a "-"
  void end_line();

  /// All of it is in its place. This, and the functions above, throw error(write_failed) when it
  /// cannot be written, and what `watch` throws.
  void finish();

 private:
  static constexpr std::size_t longest_field = 64;

  void begin_field();
  void flush();
  void expect(int bad) const;

  const std::string asked_;
  const work_watcher watch_;
  std::unique_ptr<output_file> file_;
  bool first_in_line_ = true;
  std::vector<char> buffer_;
  std::size_t used_ = 0;
};

}  // namespace grosr::graphs
