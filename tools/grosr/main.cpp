// grosr: shows the devices, measures, gives a tour, and works on graphs.
#include <fmt/format.h>

#include <grosr/version.hpp>

#include "cli/commands.hpp"
#include "cli/errors.hpp"
#include "cli/program.hpp"
#include "cli/sibling.hpp"
#include "cli/text.hpp"

namespace {

std::string version_text() {
  const grosr::build_info b = grosr::build();
  std::string text = fmt::format("grosr {} (commit {})\nbackends: {}\ncompiler: {}, {}\n",
                                 b.version, b.commit, b.backends, b.compiler, b.build_type);
  if (!b.nvcc.empty()) text += fmt::format("nvcc: {} for {}\n", b.nvcc, b.architectures);
  if (!b.sanitizers.empty()) text += fmt::format("sanitizers: {}\n", b.sanitizers);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace grosr::tool;
  if (const int failed = become_sibling(argc, argv)) return failed;
  CLI::App program{"GROSR, an operating-system runtime that lives on the GPU", "grosr"};
  action chosen;
  bool version = false;
  program.add_flag("--version", version, "Which version, backends, compilers and architectures");
  program.require_subcommand(0, 1);
  add_devices_command(program, chosen);
  add_tour_command(program, chosen);
  for (const sibling& s : siblings()) program.add_subcommand(s.name, s.summary);
  program.footer(
      "Examples:\n"
      "  grosr devices                            what there is to run on\n"
      "  grosr tour                               real work through every part, checked\n"
      "  grosr bench limits --device host:0       what the hardware allows\n"
      "  grosr bench latency --json latency.json  one task, there and back\n"
      "  grosr bench --list                       all benchmarks\n"
      "  grosr graph bfs kronecker:16 --check     breadth-first search\n\n"
      "Environment: GROSR_TRACE=FILE writes a trace that Perfetto opens;\n"
      "GROSR_SEED=N replays one schedule of the host backend.");
  return run_program(program, argc, argv, [&] {
    if (version) {
      fmt::print("{}", version_text());
      return int{exit_ok};
    }
    if (!chosen) {
      say(program.help());
      throw usage_error("no command was given; see above");
    }
    return chosen();
  });
}
