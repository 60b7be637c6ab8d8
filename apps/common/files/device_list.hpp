// A list of files where a device finds it.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "cli/interrupt.hpp"
#include "files/file_list.hpp"
#include "files/read_files.hpp"
#include "grosr/run/runtime.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/sys/server.hpp"

namespace grosr::tool {

/// For a server whose tasks read the trees of the list, and no more. 0 threads: as many as suit
/// the machine.
sys::options reading_options(const file_list& list, const device& d, unsigned threads = 0);

/// The name by which a task opens a file under that policy.
std::string name_for_device(const file_list& list, std::size_t file);

/// A runtime whose tasks read files.
template <class Reader>
using reading_tasks = runtime<read_part<Reader>, window_read<Reader>, awaited>;

/// For such a runtime: a block of four warps a multiprocessor. Calls may take as long as they like,
/// so that it has no watchdog.
runtime_options reading_runtime(const device& d);

/// Owns the names of some files of a list, and what else tasks need to read them; kept for several
/// runs.
class device_list {
 public:
  explicit device_list(const device& d);

  /// Brings the names of these files there.
  void load(const file_list& list, std::span<const std::uint32_t> files);

  reading ref(const sys::server& server) const;

  /// Where tasks begin to read the list: each at a file of its own, in a seat of its own. The rest
  /// of the files and seats is nobody's.
  std::vector<place> begin();

  /// Tells tasks to read nothing more. While they run.
  void stop();

 private:
  device where_;
  simt::buffer<char> names_;
  simt::buffer<std::uint64_t> name_;
  std::uint32_t files_ = 0;
  simt::buffer<reading::progress> now_;
  simt::buffer<std::uint32_t> seats_;
  simt::buffer<unsigned char> windows_;
};

/// Reads the files that `work` has loaded, and returns when tasks have looked at all windows. On
/// Ctrl-C it stops the work first, then throws interrupt::interrupted.
template <class Reader>
void read_all(reading_tasks<Reader>& r, device_list& work, const Reader* reader) {
  std::vector<read_part<Reader>> tasks;
  for (const place& at : work.begin()) tasks.push_back({reader, at});
  r.submit(tasks);
  while (!r.wait_all_for(std::chrono::milliseconds(50))) {
    if (!interrupt::requested()) continue;
    work.stop();
    r.wait_all();
    interrupt::check();
  }
}

}  // namespace grosr::tool
