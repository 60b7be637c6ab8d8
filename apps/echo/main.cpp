// echo: a UDP echo server that a GPU answers, clients for it, and a server of the CPU beside it.
#include <fmt/format.h>

#include "cli/errors.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  using namespace grosr;
  CLI::App program{
      "A UDP echo server that the GPU answers: warps receive datagrams and send them "
      "back, by system calls of their own",
      "echo"};
  echo::action chosen;
  program.require_subcommand(0, 1);
  echo::add_serve_command(program, chosen);
  echo::add_drive_command(program, chosen);
  echo::add_compare_command(program, chosen);
  program.footer(
      "Examples:\n"
      "  ./echo serve --port 7777                   answer until Ctrl-C\n"
      "  printf hello | nc -u -w1 127.0.0.1 7777  say something to it\n"
      "  ./echo drive --port 7777 --bytes 1024      as much as clients can send\n"
      "  ./echo compare --json echo.json            the GPU beside threads of the CPU");
  return tool::run_program(program, argc, argv, [&] {
    if (!chosen) {
      tool::say(program.help());
      throw tool::usage_error("no command was given; see above");
    }
    return chosen();
  });
}
