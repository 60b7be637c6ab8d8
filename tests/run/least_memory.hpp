// The least memory that a runtime takes, from what it says about a limit that is too small.
#pragma once

#include <cstdlib>
#include <string>

#include "grosr/run/runtime.hpp"

namespace grosr::testing {

/// 0 if the error does not say it.
template <class Runtime>
std::size_t least_memory(device d, runtime_options o) {
  o.memory_limit = 1024;
  try {
    Runtime rt(d, o);
  } catch (const error& e) {
    const std::string text = e.what();
    const auto at = text.find("need at least ");
    if (e.code() == errc::invalid_option && at != std::string::npos &&
        text.find("memory_limit is 1 KiB") != std::string::npos)
      return std::strtoull(text.c_str() + at + 14, nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace grosr::testing
