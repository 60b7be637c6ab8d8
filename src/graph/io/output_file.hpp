// A file that is wholly there, or as it was before.
#pragma once

#include <cstddef>
#include <string>

namespace grosr::graphs {

/// A regular file is written beside its path, without a name where the file system can (O_TMPFILE),
/// else under a name that ends in .tmp; finish() puts it in its place. Until then, and for ever if
/// that is not called or the program is killed, the path leads to what it led to before. What is no
/// regular file, such as a pipe, is written directly. Functions return 0, or an errno.
class output_file {
 public:
  output_file() = default;
  ~output_file();
  output_file(const output_file&) = delete;

  /// Once. An old file keeps its owner and mode, a link stays a link to the new file.
  int open(const std::string& path);
  int write(const char* from, std::size_t bytes);
  /// Once. A failure leaves the old file.
  int finish();

 private:
  std::string target_, temporary_;  ///< empty: written directly
  bool named_ = false;              ///< there is a file temporary_
  int fd_ = -1;
};

}  // namespace grosr::graphs
