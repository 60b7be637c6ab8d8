// cryptfs: an encrypted file system by FUSE whose files a GPU encrypts, or the CPU where it is
// sooner done.
#include <fmt/format.h>

#include "cli/errors.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "commands.hpp"

int main(int argc, char** argv) {
  using namespace grosr;
  CLI::App program{
      "An encrypted file system by FUSE: files are encrypted by AES-XTS, on a GPU or on the CPU, "
      "whichever is sooner done",
      "cryptfs"};
  cryptfs::action chosen;
  program.require_subcommand(0, 1);
  cryptfs::add_init_command(program, chosen);
  cryptfs::add_mount_command(program, chosen);
  cryptfs::add_check_command(program, chosen);
  cryptfs::add_bench_command(program, chosen);
  cryptfs::add_compete_command(program, chosen);
  cryptfs::add_client_command(program, chosen);
  program.footer(
      "Examples:\n"
      "  mkdir private.enc private\n"
      "  ./cryptfs init private.enc           asks for a passphrase\n"
      "  ./cryptfs mount private.enc private  what is written to private is encrypted\n"
      "  umount private\n"
      "  ./cryptfs bench --json cryptfs.json");
  return tool::run_program(program, argc, argv, [&] {
    if (!chosen) {
      tool::say(program.help());
      throw tool::usage_error("no command was given; see above");
    }
    return chosen();
  });
}
