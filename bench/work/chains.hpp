// Chains of tasks: each task starts the next one.
#pragma once

#include <cstdint>
#include <memory>

#include "work/any_runtime.hpp"

namespace grosr::tool {

/// A runtime for chains of tasks of 16 bytes, of one width.
class chains {
 public:
  chains(const device& d, width w, const runtime_options& options);

  /// Starts `count` chains of `hops` tasks. The last task of chain i stores in results[i] how many
  /// ran.
  ticket start(std::uint32_t count, std::uint32_t hops, std::uint32_t* results);

  any_runtime& runtime() { return *runtime_; }

 private:
  width width_;
  std::unique_ptr<any_runtime> runtime_;
};

}  // namespace grosr::tool
