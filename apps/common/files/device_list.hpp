// A list of files where a device finds it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "files/file_list.hpp"
#include "files/file_work.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/sys/options.hpp"

namespace grosr::tool {

/// For a server whose kernels read the trees of the list, and no more. 0 threads: as many as suit
/// the machine.
sys::options reading_options(const file_list& list, const device& d, unsigned threads = 0);

/// The name by which a kernel opens a file under that policy.
std::string name_for_device(const file_list& list, std::size_t file);

/// Owns the names and counters of the work on some files of a list; kept for several runs.
class device_list {
 public:
  explicit device_list(const device& d) : where_(d) {}

  /// Brings the names of these files there, and begins anew.
  void load(const file_list& list, std::span<const std::uint32_t> files);

  /// Begins anew with the same files.
  void rewind();

  file_work_ref ref() const;

  /// Tells the warps to take no more shares. While a kernel runs, too.
  void stop();

 private:
  device where_;
  std::uint32_t files_ = 0;
  simt::buffer<char> names_;
  simt::buffer<std::uint64_t> name_;
  simt::buffer<file_share> range_;
  simt::buffer<std::uint32_t> ready_;
  simt::buffer<file_work_ref::counters> counts_;
};

/// Waits for what was launched, asleep between looks, so that waiting costs no CPU time. On Ctrl-C
/// it stops the work first, then throws interrupt::interrupted.
void wait_asleep(const simt::stream& s, device_list& work);

}  // namespace grosr::tool
