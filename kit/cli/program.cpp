#include "cli/program.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::tool {
namespace {

/// Begins with the command that was given, which is "grosr" for "grosr graph", too.
int complain(const CLI::App& program, int code, std::string_view what) {
  std::fflush(stdout);
  const std::string& name = program.get_name();
  say(fmt::format("{}: {}\n", name.substr(0, name.find(' ')), what));
  return code;
}

int code_for(const grosr::error& e, int failed) {
  return e.code() == errc::invalid_option || e.code() == errc::no_such_device ||
                 e.code() == errc::not_built || e.code() == errc::bad_input
             ? exit_usage
             : failed;
}

/// CLI11's complaint as one line that ends in what to do.
std::string explained(const CLI::App& program, const CLI::ParseError& e) {
  std::string text = one_line(e.what());
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  std::string help = program.get_name();
  for (const CLI::App* at = &program; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    help += " " + at->get_name();
  }
  return fmt::format("{}; '{} --help' shows what there is", text, help);
}

/// Whether the reader of standard output went away (`| head`): it wanted no more.
bool reader_left() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

/// All that was printed has to have arrived.
int finish(const CLI::App& program, int code, int failed) {
  const bool flushed = std::fflush(stdout) == 0;
  const int why = errno;
  if ((flushed && std::ferror(stdout) == 0) || reader_left()) return code;
  return complain(
      program, code == exit_ok ? failed : code,
      fmt::format("standard output cannot be written{}; free space or send it elsewhere",
                  flushed ? "" : fmt::format(" ({})", std::strerror(why))));
}

}  // namespace

int run_program(CLI::App& program, int argc, char** argv, const std::function<int()>& work,
                int failed) {
  try {
    interrupt::install();
    program.parse(argc, argv);
    return finish(program, work(), failed);
  } catch (const CLI::CallForHelp& e) {
    return finish(program, program.exit(e), failed);
  } catch (const CLI::ParseError& e) {
    return complain(program, exit_usage, explained(program, e));
  } catch (const interrupt::interrupted&) {
    return exit_interrupted;
  } catch (const usage_error& e) {
    return complain(program, exit_usage, e.what());
  } catch (const grosr::error& e) {
    return complain(program, code_for(e, failed), e.what());
  } catch (const std::exception& e) {
    return complain(program, failed, e.what());
  }
}

CLI::Validator seconds_between(double least, double most) {
  CLI::Range range(least, most);
  return CLI::Validator(
      [range, least, most](std::string& text) {
        double seconds = 0;
        if (CLI::detail::lexical_cast(text, seconds) && std::isnan(seconds))
          return fmt::format("Value {} not in range {} to {}", text, least, most);
        return range(text);
      },
      "");
}

}  // namespace grosr::tool
