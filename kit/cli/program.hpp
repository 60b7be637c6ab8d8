// What all programs have in common: Ctrl-C, one line for what went wrong, exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/errors.hpp"

namespace grosr::tool {

/// Reads the arguments as `program` says, then calls `work`, whose result is the exit code. What
/// goes wrong becomes one line on stderr that begins with the program's name, and one of exit_code.
/// `failed`: the exit code of work that failed, or whose output could not be written. Call it first
/// in main(), before any thread is made: it takes over SIGINT (see interrupt.hpp).
int run_program(CLI::App& program, int argc, char** argv, const std::function<int()>& work,
                int failed = exit_failed);

/// Seconds from `least` to `most`, which "nan" is not.
CLI::Validator seconds_between(double least, double most);

}  // namespace grosr::tool
