// `store serve`.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "net/socket.hpp"
#include "server.hpp"

namespace grosr::store {
namespace {

struct options {
  std::optional<std::string> device;
  std::string address = "127.0.0.1", port = "11211", connections = "0", workers = "0",
              threads = "2", largest = "8192", memory = "0";
  double seconds = INFINITY, idle = device_options().idle;
};

int serve(const options& a) {
  using tool::parse_number;
  const auto port = static_cast<unsigned>(parse_number("--port", a.port, 0, 65535));
  server_options o;
  o.name = tool::name_of(a.address, port);
  o.threads = static_cast<unsigned>(parse_number("--threads", a.threads, 1, 64));
  o.longest_value =
      static_cast<std::uint32_t>(tool::parse_bytes("--largest", a.largest, 1, 1 << 20));
  o.memory = tool::parse_bytes("--memory", a.memory, 0, std::uint64_t{1} << 40);
  device_options k;
  const device d = tool::pick_device(a.device);
  k.workers = static_cast<unsigned>(parse_number("--workers", a.workers, 0, 2048));
  if (k.workers == 0) k.workers = usual_workers(d);
  k.connections = static_cast<unsigned>(parse_number("--connections", a.connections, 0, 1 << 18));
  if (k.connections == 0) k.connections = usual_connections(d, o.longest_value);
  k.idle = a.idle;
  const auto s = serve_on(d, o, k);
  fmt::print(
      "store: answers on {} (TCP) up to {} connections with {} warps of {} and {} service threads; "
      "Ctrl-C ends\n",
      tool::text_of(s->name()), k.connections, k.workers, d.name(), o.threads);
  std::fflush(stdout);
  bool interrupted = false;
  try {
    for (double left = a.seconds; left > 0; left -= 0.1) {
      tool::interrupt::sleep_for_seconds(std::min(left, 0.1));
      s->check();
    }
  } catch (const tool::interrupt::interrupted&) {
    interrupted = true;
  }
  const totals t = s->stop();
  fmt::print(
      "store: {} connections; {} gets, of which {} found a value; {} sets, {} deletes, {} "
      "requests refused; {} keys at the end\n",
      t.connections, t.gets, t.hits, t.sets, t.deletes, t.refused, s->items());
  return interrupted ? tool::exit_interrupted : tool::exit_ok;
}

}  // namespace

void add_serve_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand("serve", "Keep values until Ctrl-C");
  auto a = std::make_shared<options>();
  command->add_option("--device", a->device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command
      ->add_option("--address", a->address,
                   "Of the interface to answer on; 127.0.0.1: only "
                   "this machine's programs, 0.0.0.0: everybody")
      ->type_name("A");
  command->add_option("--port", a->port, "TCP port (11211); 0: a free one")->type_name("P");
  command->add_option("--connections", a->connections, "At a time; 0: chosen")->type_name("N");
  command->add_option("--workers", a->workers, "Warps that answer; 0: chosen")->type_name("N");
  command
      ->add_option("--idle", a->idle,
                   "A connection without a request for so long ends if another one waits (5)")
      ->check(tool::seconds_between(0.001, 1e6))
      ->type_name("S");
  command->add_option("--threads", a->threads, "Service threads (2)")->type_name("T");
  command->add_option("--largest", a->largest, "Bytes of the largest value that is kept (8K)")
      ->type_name("B");
  command->add_option("--memory", a->memory, "Bytes for keys and values; 0: chosen")
      ->type_name("B");
  command->add_option("--seconds", a->seconds, "End after so long")
      ->check(tool::seconds_between(0.0, 1e9))
      ->type_name("S");
  command->footer(
      "Examples:\n"
      "  store serve                                on 127.0.0.1:11211, until Ctrl-C\n"
      "  store serve --device host:0 --port 0       on the CPU's backend, on a free port\n"
      "  store serve --memory 4G --largest 65536\n\n"
      "Requests: get KEY..., set KEY FLAGS 0 BYTES [noreply], delete KEY [noreply], quit. Nothing "
      "is ever thrown out: a set that finds no memory gets SERVER_ERROR.\n"
      "Exit code: 0; 1 if the device failed; 2 if nothing could be started; 130 on Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return serve(*a); }; });
}

}  // namespace grosr::store
