// What servers still have to do when the program ends without destroying them.
#pragma once

#include <functional>

namespace grosr::sys {

/// While it lives, exit() calls `leave`, the newest one first. Its destructor returns when no such
/// call is under way.
class at_exit {
 public:
  explicit at_exit(std::function<void()> leave);
  ~at_exit();
  at_exit(const at_exit&) = delete;

 private:
  const std::function<void()> leave_;
};

}  // namespace grosr::sys
