// How long a file takes to be written to a file system, and to be read again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "measure/samples.hpp"
#include "other_file_system.hpp"
#include "own_process.hpp"

namespace grosr::cryptfs {

/// A folder that goes with all that is in it. What is mounted there is unmounted before.
class temporary_folder {
 public:
  /// In `parent`. Throws usage_error.
  explicit temporary_folder(const std::string& parent);
  ~temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Fills memory with random bytes.
void make_random(const shared_memory& content);

struct file_rates {
  tool::samples write_us, read_us;
  bool right = true;         ///< what was read is what was written
  double counted_per_s = 0;  ///< while files were written and read
};

/// Writes and reads a file of this content so often, after a first time that does not count, in
/// requests of 1 MB. Each time the file system is mounted again, so that nothing is in the page
/// cache. `count`: of something that goes on meanwhile.
file_rates measure_files(
    file_system& files, const shared_memory& content, unsigned repeats,
    const std::function<std::uint64_t()>& count = [] { return 0; });

}  // namespace grosr::cryptfs
