// Tasks that call the host and await the reply, or wait for it in place.
#pragma once

#include <cstdint>
#include <memory>

#include "grosr/run/ticket.hpp"
#include "grosr/simt/device.hpp"
#include "work/any_runtime.hpp"

namespace grosr::tool {

/// A server and a runtime whose tasks call it.
class waiting_tasks {
 public:
  /// `most`: calls under way at a time.
  waiting_tasks(const device& d, std::uint32_t most, const runtime_options& options);
  ~waiting_tasks();

  enum class how { awaited, in_place };
  /// Starts `count` tasks that make `calls` calls each, one after the other: sleeps of `sleep_us`,
  /// or, 0, calls that do nothing.
  void start(how h, std::uint32_t count, std::uint32_t calls, std::uint32_t sleep_us);
  /// Tasks whose calls have all ended without an error since the last start().
  std::uint32_t ended();

  any_runtime& runtime();

 private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

}  // namespace grosr::tool
