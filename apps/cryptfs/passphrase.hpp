// Where the passphrase comes from. Never the command line, which others can read.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "secret.hpp"

namespace grosr::cryptfs {

inline constexpr const char* passphrase_variable = "CRYPTFS_PASSPHRASE";

struct passphrase_options {
  std::optional<std::string> file;
  int descriptor = -1;  ///< of a pipe, from the process that asked
};
void add_passphrase_options(CLI::App& command, passphrase_options& o);

/// The first line of the file, else the environment's, else what the terminal is asked for without
/// echo; `twice`: two times, which have to be alike. Throws usage_error.
secret read_passphrase(const passphrase_options& o, bool twice);

}  // namespace grosr::cryptfs
