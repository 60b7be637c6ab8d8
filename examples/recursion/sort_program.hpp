// The programs `mergesort` and `cilksort`: options, keys, times, checks.
#pragma once

#include <string>
#include <utility>

#include "cli/program.hpp"
#include "grosr/run/options.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/device.hpp"
#include "measure/report.hpp"
#include "recursion/sized_program.hpp"

namespace grosr::recursion {

struct sort_options : sized_options {
  std::string distribution = "uniform";
};

/// What is sorted, where, and how often.
class sort_run {
 public:
  sort_run(const std::string& name, const sort_options& o, std::uint64_t count_on_gpu);

  /// Sorts with a Sort as often as asked for, and checks; the exit code.
  template <class Sort>
  int with() {
    Sort sort(plan_.where, plan_.runtime);
    return measure([&] { sort.run(keys_, scratch_); }, [&] { return sort.stats(); });
  }

 private:
  int measure(const std::function<void()>& sort, const std::function<runtime_stats()>& stats);

  std::string distribution_;
  sized_plan plan_;
  tool::report out_;
  simt::buffer<std::uint32_t> keys_, scratch_, given_;
};

/// main() of a program that sorts with a Sort.
template <class Sort>
int sort_main(int argc, char** argv, const std::string& name, const std::string& summary,
              std::uint64_t count_on_gpu) {
  CLI::App program{summary, name};
  sort_options o;
  add_options(program, o,
              "How many keys; " + std::to_string(count_on_gpu / 1'000'000) +
                  "M on GPUs, 100k on the host backend");
  program
      .add_option("--distribution", o.distribution,
                  "What the keys are: uniform (default), sorted, reverse or equal")
      ->check(CLI::IsMember({"uniform", "sorted", "reverse", "equal"}))
      ->type_name("WHAT");
  program.footer("Examples:\n  " + name + "\n  " + name +
                 " 1M --repeat 20 --distribution reverse\n  " + name +
                 " 100k --device host:0 --check on --json " + name + ".json\n\n" + exit_codes);
  return tool::run_program(program, argc, argv,
                           [&] { return sort_run(name, o, count_on_gpu).template with<Sort>(); });
}

}  // namespace grosr::recursion
