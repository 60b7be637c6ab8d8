// `store drive`.
#include <memory>

#include <fmt/format.h>

#include "cli/errors.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "drive.hpp"
#include "net/socket.hpp"

namespace grosr::store {
namespace {

struct options {
  std::string address = "127.0.0.1", port = "11211", bytes = "100", keys = "10000", clients = "2",
              connections = "4", pipeline = "1", sets = "10";
  double seconds = 2;
};

int run(const options& a) {
  const auto number = [](const char* what, const std::string& text, unsigned least, unsigned most) {
    return static_cast<unsigned>(tool::parse_number(what, text, least, most));
  };
  drive_options o;
  o.server = tool::name_of(a.address, number("--port", a.port, 1, 65535));
  o.bytes = number("--bytes", a.bytes, 0, 1 << 20);
  o.keys = number("--keys", a.keys, 1, 10'000'000);
  o.clients = number("--clients", a.clients, 1, 256);
  o.connections = number("--connections", a.connections, 1, 256);
  o.pipeline = number("--pipeline", a.pipeline, 1, 64);
  o.set_percent = number("--sets", a.sets, 0, 100);
  o.seconds = a.seconds;
  if (std::uint64_t{o.keys} * (o.bytes + 100) > std::uint64_t{1} << 30)
    throw tool::usage_error(fmt::format(
        "{} keys of {} bytes are more than clients hold (1 GiB); ask for fewer or smaller ones",
        o.keys, o.bytes));
  const driven d = drive(o);
  fmt::print(
      "store: {} requests of {} B values were answered in {:.2f} s: {}; {} of them p50 {} "
      "us, p99 {} us; {} misses\n",
      tool::grouped(d.answered), o.bytes, d.seconds,
      tool::only_unit("requests_per_s", static_cast<double>(d.answered) / d.seconds), o.pipeline,
      tool::three_digits(d.round_trip.median()), tool::three_digits(d.round_trip.quantile(0.99)),
      tool::grouped(d.misses));
  if (d.answered == 0) throw std::runtime_error("no request was answered");
  return tool::exit_ok;
}

}  // namespace

void add_drive_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand("drive", "Set and get values, and check what comes back");
  auto a = std::make_shared<options>();
  command->add_option("--address", a->address, "The server's (127.0.0.1)")->type_name("A");
  command->add_option("--port", a->port, "The server's (11211)")->type_name("P");
  command->add_option("--bytes", a->bytes, "Of a value (100)")->type_name("B");
  command->add_option("--keys", a->keys, "How many, all set before (10000)")->type_name("K");
  command->add_option("--clients", a->clients, "Threads (2)")->type_name("N");
  command->add_option("--connections", a->connections, "Of each thread (4)")->type_name("C");
  command->add_option("--pipeline", a->pipeline, "Requests that each has under way (1)")
      ->type_name("P");
  command->add_option("--sets", a->sets, "Percent of the requests; the rest are gets (10)")
      ->type_name("S");
  command->add_option("--seconds", a->seconds, "How long to count (2)")
      ->check(tool::seconds_between(0.05, 1e6))
      ->type_name("S");
  command->footer(
      "Examples:\n"
      "  store drive --port 11211\n"
      "  store drive --port 11211 --bytes 1024 --clients 8 --pipeline 16\n\n"
      "Works with memcached too. Every byte of every answer is checked.\n"
      "Exit code: 0; 1 if an answer was wrong or none came; 2 if nothing could be started; 130 on "
      "Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return run(*a); }; });
}

}  // namespace grosr::store
