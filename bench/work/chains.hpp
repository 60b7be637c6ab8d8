// Chains of tasks: each task starts the next one.
#pragma once

#include <cstdint>
#include <memory>

#include "work/any_runtime.hpp"

namespace grosr::tool {

/// A runtime for chains of tasks of 16 bytes, of one width; or of forks: a link joins, and forks
/// one child, whose continuation is the next link.
class chains {
 public:
  chains(const device& d, width w, const runtime_options& options, bool forks = false);

  /// Starts `count` chains of `hops` tasks. The last task of chain i stores in results[i] how many
  /// ran.
  ticket start(std::uint32_t count, std::uint32_t hops, std::uint32_t* results);

  any_runtime& runtime() { return *runtime_; }

 private:
  width width_;
  bool forks_;
  std::unique_ptr<any_runtime> runtime_;
};

}  // namespace grosr::tool
