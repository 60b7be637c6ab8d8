// A list of files where a device finds it.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "cli/interrupt.hpp"
#include "files/file_list.hpp"
#include "files/read_files.hpp"
#include "grosr/run/options.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/sys/server.hpp"

namespace grosr::tool {

/// For a server whose tasks read the trees of the list, and no more. 0 threads: as many as suit
/// the machine.
sys::options reading_options(const file_list& list, const device& d, unsigned threads = 0);

/// The name by which a task opens a file under that policy.
std::string name_for_device(const file_list& list, std::size_t file);

/// For a runtime whose tasks read files: a block of four warps a multiprocessor. Calls may take as
/// long as they like, so that it has no watchdog.
runtime_options reading_runtime(const device& d);

/// Owns the names of some files of a list, and what else tasks need to read them; kept for several
/// runs.
class device_list {
 public:
  /// For a runtime of so many workers.
  device_list(const device& d, unsigned workers);

  /// Brings the names of these files there.
  void load(const file_list& list, std::span<const std::uint32_t> files);

  reading ref(const sys::server& server) const;

  /// Tells tasks that begin to read nothing, or to read again. While others run, too.
  void stop(bool yes);

 private:
  device where_;
  simt::buffer<char> names_;
  simt::buffer<std::uint64_t> name_;
  simt::buffer<unsigned char> windows_;
  simt::buffer<std::uint32_t> stop_;
};

/// Runs a task for each of the first `files` files of the list, and what these spawn; returns when
/// all have ended. On Ctrl-C it stops the work first, then throws interrupt::interrupted.
template <class Runtime, class Reader>
void read_all(Runtime& r, device_list& work, const Reader* reader, std::uint32_t files) {
  using task = read_windows<Reader>;
  std::vector<task> tasks(files);
  for (std::uint32_t f = 0; f < files; ++f) tasks[f] = {reader, f, 0, 0};
  r.submit(tasks);
  while (!r.wait_all_for(std::chrono::milliseconds(50))) {
    if (!interrupt::requested()) continue;
    work.stop(true);
    r.wait_all();
    work.stop(false);
    interrupt::check();
  }
}

}  // namespace grosr::tool
