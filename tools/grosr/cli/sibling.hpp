// Commands of `grosr` that are programs of their own, as git has it: `grosr bench` is grosr-bench,
// which lies in the same folder. The tour builds without them.
#pragma once

#include <span>

namespace grosr::tool {

struct sibling {
  const char* name;     ///< "bench" for grosr-bench
  const char* summary;  ///< for --help
};
std::span<const sibling> siblings();

/// When the first argument names a sibling: becomes that program, with the arguments that follow.
/// Returns 0 when it names none; when the program cannot be started, says so in one line on stderr
/// and returns the exit code. Call it first in main(): signals are not taken over yet.
int become_sibling(int argc, char** argv);

}  // namespace grosr::tool
