// How the programs wait for a result: able to be interrupted.
#pragma once

#include <chrono>
#include <functional>

#include "grosr/run/runtime.hpp"

namespace grosr::recursion {

/// Called some twenty times a second while a program waits. An exception that it throws ends the
/// wait, and the runtime with it.
using progress_callback = std::function<void()>;

/// The result, when it has come. Throws grosr::error.
template <class Runtime, class Result>
Result await(Runtime& rt, const future<Result>& f, const progress_callback& between) {
  try {
    while (!f.wait_for(std::chrono::milliseconds(50)))
      if (between) between();
  } catch (const grosr::error&) {
    throw;
  } catch (...) {
    try {
      rt.stop(std::chrono::milliseconds(1));
    } catch (const grosr::error&) {  // that there was more to do is known
    }
    throw;
  }
  return f.get();
}

}  // namespace grosr::recursion
