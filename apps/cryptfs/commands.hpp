// The subcommands. Each adds itself; the one on the command line leaves its work in `chosen`.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace grosr::cryptfs {

using action = std::function<int()>;

void add_init_command(CLI::App& program, action& chosen);
void add_mount_command(CLI::App& program, action& chosen);
void add_check_command(CLI::App& program, action& chosen);
void add_bench_command(CLI::App& program, action& chosen);
void add_compete_command(CLI::App& program, action& chosen);
void add_client_command(CLI::App& program, action& chosen);

}  // namespace grosr::cryptfs
