// grosr: shows the devices, measures, and gives a tour.
#include <fmt/format.h>

#include <grosr/version.hpp>

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/commands.hpp"
#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::tool {
namespace {

std::string version_text() {
  const build_info b = build();
  std::string text = fmt::format("grosr {} (commit {})\nbackends: {}\ncompiler: {}, {}\n",
                                 b.version, b.commit, b.backends, b.compiler, b.build_type);
  if (!b.nvcc.empty()) text += fmt::format("nvcc: {} for {}\n", b.nvcc, b.architectures);
  if (!b.sanitizers.empty()) text += fmt::format("sanitizers: {}\n", b.sanitizers);
  return text;
}

int complain(int code, std::string_view what) {
  std::fflush(stdout);
  fmt::print(stderr, "grosr: {}\n", what);
  return code;
}

int code_for(const grosr::error& e) {
  return e.code() == errc::invalid_option || e.code() == errc::no_such_device ||
                 e.code() == errc::not_built
             ? exit_usage
             : exit_failed;
}

/// CLI11's complaint as one line that ends in what to do.
std::string explained(const CLI::App& program, const CLI::ParseError& e) {
  std::string text = one_line(e.what());
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  std::string help = "grosr";
  for (const CLI::App* at = &program; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    help += " " + at->get_name();
  }
  return fmt::format("{}; '{} --help' shows what there is", text, help);
}

int run(int argc, char** argv) {
  CLI::App program{"GROSR, an operating-system runtime that lives on the GPU", "grosr"};
  action chosen;
  bool version = false;
  program.add_flag("--version", version, "Which version, backends, compilers and architectures");
  program.require_subcommand(0, 1);
  add_devices_command(program, chosen);
  add_bench_command(program, chosen);
  add_tour_command(program, chosen);
  program.footer(
      "Examples:\n"
      "  grosr devices                            what there is to run on\n"
      "  grosr tour                               real work through every part, checked\n"
      "  grosr bench limits --device host:0       what the hardware allows\n"
      "  grosr bench latency --json latency.json  one task, there and back\n"
      "  grosr bench --list                       all benchmarks\n\n"
      "Environment: GROSR_TRACE=FILE writes a trace that Perfetto opens;\n"
      "GROSR_SEED=N replays one schedule of the host backend.");
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return program.exit(e);
  } catch (const CLI::ParseError& e) {
    return complain(exit_usage, explained(program, e));
  }
  if (version) {
    fmt::print("{}", version_text());
    return exit_ok;
  }
  if (!chosen) {
    fmt::print(stderr, "{}", program.help());
    return complain(exit_usage, "no command was given; see above");
  }
  return chosen();
}

/// Whether the reader of standard output went away (`| head`): it wanted no more.
bool reader_left() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// What was printed has to have arrived.
int finish(int code) {
  if ((std::fflush(stdout) == 0 && std::ferror(stdout) == 0) || reader_left()) return code;
  return complain(code == exit_ok ? exit_failed : code,
                  fmt::format("standard output cannot be written ({}); free space or send it "
                              "elsewhere",
                              std::strerror(errno)));
}

}  // namespace
}  // namespace grosr::tool

int main(int argc, char** argv) {
  using namespace grosr::tool;
  interrupt::install();
  try {
    return finish(run(argc, argv));
  } catch (const interrupt::interrupted&) {
    return exit_interrupted;
  } catch (const usage_error& e) {
    return complain(exit_usage, e.what());
  } catch (const grosr::error& e) {
    return complain(code_for(e), e.what());
  } catch (const std::exception& e) {
    return complain(exit_failed, e.what());
  }
}
