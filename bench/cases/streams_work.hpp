// Work that goes from a stream to tasks and back, with the device's clock at each end.
#pragma once

#include <chrono>
#include <memory>

#include "grosr/simt/device.hpp"
#include "work/any_runtime.hpp"

namespace grosr::tool {

class stream_hops {
 public:
  stream_hops(const device& d, const runtime_options& options);
  ~stream_hops();

  struct times {
    double to_task_us;    ///< from the end of a kernel to a task that was submitted after it
    double to_kernel_us;  ///< from that to a kernel of a stream that waits for its ticket
  };
  /// All is put into the stream at once, behind a kernel that ends when that is `held` ago.
  times hop(std::chrono::microseconds held);
  /// From the end of a kernel to one of another stream that waits for an event; on the host, which
  /// has no events, to the next one in the stream.
  double between_streams_us(std::chrono::microseconds held);

  any_runtime& runtime();

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

}  // namespace grosr::tool
