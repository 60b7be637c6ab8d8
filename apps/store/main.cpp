// store: a key-value server that a GPU answers, clients for it, and a server of the CPU beside it.
#include <fmt/format.h>

#include "cli/errors.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  using namespace grosr;
  CLI::App program{
      "A key-value server that the GPU answers: warps accept connections, and keep and "
      "find values in the GPU's memory (memcached's text protocol: get, set, delete, "
      "quit)",
      "store"};
  store::action chosen;
  program.require_subcommand(0, 1);
  store::add_serve_command(program, chosen);
  store::add_drive_command(program, chosen);
  store::add_compare_command(program, chosen);
  program.footer(
      "Examples:\n"
      "  store serve --port 11211           answer until Ctrl-C\n"
      "  printf 'set a 0 0 3\\r\\nabc\\r\\nget a\\r\\nquit\\r\\n' | nc 127.0.0.1 11211\n"
      "  store drive --port 11211           as much as clients can ask\n"
      "  store compare --json store.json    the GPU beside threads of the CPU");
  return tool::run_program(program, argc, argv, [&] {
    if (!chosen) {
      tool::say(program.help());
      throw tool::usage_error("no command was given; see above");
    }
    return chosen();
  });
}
