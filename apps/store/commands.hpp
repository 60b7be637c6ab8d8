// The subcommands. Each adds itself; the one on the command line leaves its work in `chosen`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace grosr::store {

using action = std::function<int()>;

void add_serve_command(CLI::App& program, action& chosen);
void add_drive_command(CLI::App& program, action& chosen);
void add_compare_command(CLI::App& program, action& chosen);

}  // namespace grosr::store
