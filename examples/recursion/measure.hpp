// What the programs have in common: options, and a run that is measured, checked and reported.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "measure/report.hpp"
#include "recursion/await.hpp"

namespace grosr::recursion {

struct program_options {
  std::optional<std::string> device, memory, repeat, json;
  bool check = false, no_check = false;

  void add_to(CLI::App& program);
  /// Throws tool::usage_error.
  runtime_options for_runtime() const;
};

/// A computation, on the device and on the CPU.
class job {
 public:
  virtual ~job() = default;
  virtual void run(const progress_callback& between) = 0;
  virtual runtime_stats stats() = 0;
  virtual void run_on_cpu() = 0;
  virtual bool is_small() const = 0;        ///< to be run on the CPU as well unless told otherwise
  virtual std::string name() const = 0;     ///< "fib 30"
  virtual std::string outcome() const = 0;  ///< of the last run: "fib(30) = 832,040"
  virtual std::string outcome_json() const = 0;  ///< the same, exact
  virtual std::string wrong() const = 0;         ///< what is wrong with it; empty: nothing
  virtual std::pair<std::string, double> work() const = 0;  ///< {"nodes", 4130071}
};

/// Runs it as often as asked, prints and writes what came out; the exit code.
int measure(job& j, const std::string& title, const program_options& o, const device& where,
            tool::json_file file);

}  // namespace grosr::recursion
