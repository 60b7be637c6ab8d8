// How the program ends: exit codes, and the error that means "asked for something impossible".
#pragma once

#include <stdexcept>
#include <string>

namespace grosr::tool {

enum exit_code : int {
  exit_ok = 0,
  exit_failed = 1,  ///< the work failed, or a result was wrong
  exit_usage = 2,   ///< what was asked cannot be done; nothing was started
  exit_interrupted = 130,
};

/// What was asked, what was found, what to do; in one line. Exit code 2.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace grosr::tool
