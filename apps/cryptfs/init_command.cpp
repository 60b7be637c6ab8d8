// `cryptfs init`.
#include <fmt/format.h>

#include <memory>

#include "cli/errors.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "key_file.hpp"
#include "passphrase.hpp"

namespace grosr::cryptfs {
namespace {

struct asked {
  std::string directory;
  std::uint32_t sector = 4096;
  passphrase_options passphrase;
};

int init(const asked& a) {
  check_new_directory(a.directory);
  make_key_file(a.directory, a.sector, read_passphrase(a.passphrase, true));
  fmt::print(
      "cryptfs: {} is an encrypted directory now, with sectors of {} bytes; without {} in "
      "it, and the passphrase, its files are lost\n",
      tool::one_line(a.directory), a.sector, key_file_name);
  return tool::exit_ok;
}

}  // namespace

void add_init_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand("init", "Make an empty directory an encrypted one");
  auto a = std::make_shared<asked>();
  command->add_option("DIR", a->directory, "An empty directory")->required();
  command->add_option("--sector", a->sector, "Bytes that are encrypted as one: 4096 or 512 (4096)")
      ->check(CLI::IsMember({4096, 512}))
      ->type_name("N");
  add_passphrase_options(*command, a->passphrase);
  command->footer(
      "Examples:\n"
      "  mkdir private.enc && ./cryptfs init private.enc\n"
      "  ./cryptfs init private.enc --sector 512 --passphrase-file secret.txt\n\n"
      "Exit code: 0; 2 if nothing was made.");
  command->callback([=, &chosen] { chosen = [=] { return init(*a); }; });
}

}  // namespace grosr::cryptfs
