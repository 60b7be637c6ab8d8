// Where the clock of a device stands beside the host's, for traces that show both.
#pragma once

#include <cstdint>
#include <optional>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::run {

/// Both clocks at one moment, in nanoseconds. `error`: how far `on_host` may be from that moment.
struct clock_reading {
  std::uint64_t on_device, on_host, error;
};

/// Reads a device's clock by a kernel that answers 16 questions of the host, of which the quickest
/// counts. None when the kernel did not begin within a second: others have the whole device.
class clock_reader {
 public:
  /// Loads the kernel, so that read() can begin beside a resident one. Throws as simt::stream does.
  explicit clock_reader(const device& d);
  std::optional<clock_reading> read();

 private:
  friend struct clock_kernel;
  struct questions {
    std::uint32_t asked, answered;
    std::uint64_t at;
  };
  simt::buffer<questions> words_;  // pinned; before the stream, whose kernel answers there
  simt::stream stream_;
};

/// Host times as times of a device. Not thread-safe.
class device_clock {
 public:
  /// Reads the clock of a GPU; that of host:N is the host's own.
  explicit device_clock(const device& d);

  /// Reads it again: what lies between two readings, and the drift of the clocks, is known then.
  void read_again();

  /// None where the device never answered.
  std::optional<std::uint64_t> at(std::uint64_t on_host) const;

 private:
  std::optional<clock_reader> reader_;  // none: the host's own clock
  std::optional<clock_reading> first_, last_;
};

}  // namespace grosr::run
