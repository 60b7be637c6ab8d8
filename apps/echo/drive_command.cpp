// `echo drive`.
#include <memory>

#include <fmt/format.h>

#include "cli/errors.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "drive.hpp"
#include "net/socket.hpp"

namespace grosr::echo {
namespace {

struct asked {
  std::string address = "127.0.0.1", port = "7777", bytes = "64", clients = "2", sockets = "8",
              window = "4", lost_after = "50";
  double seconds = 2;
};

int run(const asked& a) {
  using tool::parse_number;
  drive_options o;
  const auto number = [](const char* what, const std::string& text, unsigned least, unsigned most) {
    return static_cast<unsigned>(parse_number(what, text, least, most));
  };
  o.server = tool::name_of(a.address, number("--port", a.port, 1, 65535));
  o.bytes = number("--bytes", a.bytes, least_bytes, 65507);
  o.clients = number("--clients", a.clients, 1, 256);
  o.sockets = number("--sockets", a.sockets, 1, 256);
  o.window = number("--window", a.window, 1, 64);
  o.lost_after_ms = number("--lost-after", a.lost_after, 1, 60'000);
  o.seconds = a.seconds;
  const driven d = drive(o);
  const double rate = static_cast<double>(d.echoed) / d.seconds;
  fmt::print(
      "echo: {} datagrams of {} bytes came back in {:.2f} s: {}, {}; round trip p50 {} us, "
      "p99 {} us; {} lost, {} wrong\n",
      tool::grouped(d.echoed), o.bytes, d.seconds, tool::only_unit("packets_per_s", rate),
      tool::only_unit("gb_per_s", rate * o.bytes / 1e9), tool::three_digits(d.round_trip.median()),
      tool::three_digits(d.round_trip.quantile(0.99)), tool::grouped(d.lost),
      tool::grouped(d.wrong));
  if (d.wrong != 0 || d.echoed == 0)
    throw std::runtime_error(d.wrong != 0 ? "some echoes held other bytes than were sent"
                                          : "nothing came back; is it an echo server?");
  return tool::exit_ok;
}

}  // namespace

void add_drive_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand("drive", "Send as much to an echo server as it answers");
  auto a = std::make_shared<asked>();
  command->add_option("--address", a->address, "The server's (127.0.0.1)")->type_name("A");
  command->add_option("--port", a->port, "The server's (7777)")->type_name("P");
  command->add_option("--bytes", a->bytes, "Of a datagram, 16 to 65507 (64)")->type_name("B");
  command->add_option("--clients", a->clients, "Threads that send (2)")->type_name("N");
  command->add_option("--sockets", a->sockets, "Of each thread (8)")->type_name("K");
  command->add_option("--window", a->window, "Datagrams that each socket has under way (4)")
      ->type_name("W");
  command
      ->add_option("--lost-after", a->lost_after, "When one that is not back counts as lost (50)")
      ->type_name("MS");
  command->add_option("--seconds", a->seconds, "How long to count (2)")
      ->check(tool::seconds_between(0.05, 1e6))
      ->type_name("S");
  command->footer(
      "Examples:\n"
      "  ./echo drive --port 7777\n"
      "  ./echo drive --port 7777 --bytes 4096 --clients 8 --window 2\n\n"
      "Each echo's length and head are checked, and all bytes of one in 64.\n"
      "Exit code: 0; 1 if an echo was wrong or none came; 2 if nothing could be started; 130 on "
      "Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return run(*a); }; });
}

}  // namespace grosr::echo
