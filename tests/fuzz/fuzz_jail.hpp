// What the fuzzer's own process may not do, whatever the library lets through: a mistake there ends
// this program and harms nobody.
#pragma once

#include <functional>
#include <string>

namespace grosr::tool {

/// Has Linux refuse to make calls that change the process or the machine, for good: whoever makes
/// one ends the program with a report. Files stay below `file_bytes`. False where Linux has no
/// filters.
bool enter_jail(std::uint64_t file_bytes);

/// What is written to stderr, with the reason before it, when the program crashes, makes a call
/// that it may not make, or `end_with` is called. It may run in a signal handler.
void on_crash(std::function<std::string()> report);
[[noreturn]] void end_with(const std::string& reason);

}  // namespace grosr::tool
