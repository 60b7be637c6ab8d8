// Other processes that use the same device, as `cryptfs bench --competing` measures beside.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grosr/simt/device.hpp"
#include "own_process.hpp"

namespace grosr::cryptfs {

/// How many kernels one has finished, in memory of that process and of this one.
inline std::atomic<std::uint64_t>& kernels_in(const shared_memory& m) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  return *reinterpret_cast<std::atomic<std::uint64_t>*>(m.data());
}

/// `cryptfs compete`, so many times. They end with this, and with the process that has this, even
/// if it is killed.
class competitors {
 public:
  /// Returns when each has finished a kernel. `steps`: of a kernel, see calibrate(). Throws
  /// std::runtime_error where one does not run.
  competitors(unsigned count, const device& d, std::uint64_t steps);
  ~competitors();
  competitors(const competitors&) = delete;

  /// Kernels that they have finished, all together.
  std::uint64_t finished() const;
  /// Which one has ended, and how; empty while all run.
  std::string wrong();

 private:
  struct one {
    pid_t pid = 0;
    std::unique_ptr<shared_memory> count;
  };
  void wait_until_running();
  void end() noexcept;

  std::vector<one> all_;
  pipe_ends until_;  // they read that it is closed
  std::string wrong_;
};

}  // namespace grosr::cryptfs
