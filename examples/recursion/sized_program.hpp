// What the programs that show recursion are told: how much, where, how often.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>

#include "cli/interrupt.hpp"
#include "grosr/run/options.hpp"
#include "grosr/simt/device.hpp"
#include "measure/samples.hpp"

namespace grosr::recursion {

struct sized_options {
  std::optional<std::string> size, device, memory, repeat, check, json;
};

inline constexpr const char* exit_codes =
    "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.";

/// Adds them to a program. `size_help`: what N is.
void add_options(CLI::App& program, sized_options& o, const std::string& size_help);

/// The same, read. Throws tool::usage_error and grosr::error.
struct sized_plan {
  grosr::device where;
  std::uint64_t size = 0;
  unsigned repeats = 0;
  bool checks = false;
  runtime_options runtime;

  struct sizes {
    std::uint64_t on_gpu, on_host, least, most;
    std::uint64_t most_checked;  ///< results up to there are checked where nothing is said
  };
  sized_plan(const sized_options& o, const sizes& s);

  /// Times work(), `repeats` times after once for nothing; prepare() comes before each.
  tool::samples repeat(const std::string& what, const std::function<void()>& prepare,
                       const std::function<void()>& work) const;
};

}  // namespace grosr::recursion
