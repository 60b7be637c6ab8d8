// The commands of `grosr`. Each adds its options to the program's and, once parsed, runs.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace grosr::tool {

/// What the parsed command line asks for; returns the exit code.
using action = std::function<int()>;

void add_devices_command(CLI::App& program, action& chosen);
void add_tour_command(CLI::App& program, action& chosen);

}  // namespace grosr::tool
