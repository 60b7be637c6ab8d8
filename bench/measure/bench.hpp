// What a benchmark is, and the command line of a program that has some: NAME, its numbers, and
// where, how often and into which file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/session.hpp"

namespace grosr::tool {

/// A positional argument of a bench: a whole number within bounds.
struct bench_argument {
  const char* name;
  const char* meaning;
  std::uint64_t least, most;
};

struct bench {
  const char* name;
  const char* summary;
  std::vector<bench_argument> arguments;
  const char* example;
  void (*run)(session&);
  bool hidden = false;
  const char* alias = nullptr;  ///< another name, of the report that it repeats
};

/// A program that has benches: `command` is what a user types before NAME ("grosr bench"). Called
/// from main(), first of all. Returns the exit code.
struct bench_program {
  const char* command;
  const char* description;
  std::vector<bench> all;
};
int run_benches(const bench_program& program, int argc, char** argv);

}  // namespace grosr::tool
