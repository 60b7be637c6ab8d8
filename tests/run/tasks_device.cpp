// The runtime that suites of tasks run on.
#include "run/tasks.hpp"

namespace grosr::testing {

std::unique_ptr<test_runtime> make_runtime(device d, const runtime_options& o) {
  return std::make_unique<test_runtime>(d, o);
}

}  // namespace grosr::testing
