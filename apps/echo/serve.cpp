// `echo serve`.
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

namespace grosr::echo {
namespace {

struct asked {
  std::optional<std::string> device;
  std::string address = "127.0.0.1", port = "7777", blocks = "0", bytes = "4096", threads = "2";
  std::string by = "warp";
  double seconds = INFINITY;
};

int serve(const asked& a) {
  using tool::parse_number;
  const auto port = static_cast<unsigned>(parse_number("--port", a.port, 0, 65535));
  server_options o;
  o.name = tool::name_of(a.address, port);
  o.threads = o.sockets = static_cast<unsigned>(parse_number("--threads", a.threads, 1, 64));
  o.bytes = static_cast<std::uint32_t>(parse_number("--bytes", a.bytes, 1, 65507));
  kernel_options k;
  k.who = a.by == "warp" ? sys::granularity::warp : sys::granularity::block;
  const device d = tool::pick_device(a.device);
  k.groups = static_cast<unsigned>(parse_number("--blocks", a.blocks, 0, 4096));
  if (k.groups == 0) k.groups = usual_groups(d);
  const auto s = serve_on(d, o, k);
  fmt::print("echo: answers on {} (UDP) with {} {}s of {} and {} service threads; Ctrl-C ends\n",
             tool::text_of(s->name()), k.groups, a.by, d.name(), o.threads);
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
      "echo: answered {} datagrams of {} bytes in all, whose values sum up to {}; dropped {} "
      "of more than {} bytes; {} calls failed\n",
      t.datagrams, t.bytes, t.sum, t.too_long, o.bytes, t.failed);
  return interrupted ? tool::exit_interrupted : tool::exit_ok;
}

}  // namespace

void add_serve_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand("serve", "Answer datagrams until Ctrl-C");
  auto a = std::make_shared<asked>();
  command->add_option("--device", a->device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command
      ->add_option("--address", a->address,
                   "Of the interface to answer on; 127.0.0.1: only "
                   "this machine's programs, 0.0.0.0: everybody")
      ->type_name("A");
  command->add_option("--port", a->port, "UDP port (7777); 0: a free one")->type_name("P");
  command->add_option("--blocks", a->blocks, "How many warps or blocks answer; 0: chosen")
      ->type_name("N");
  command->add_option("--by", a->by, "Who answers a datagram: warp or block")
      ->check(CLI::IsMember({"warp", "block"}))
      ->type_name("WHO");
  command->add_option("--threads", a->threads, "Service threads, and sockets (2)")->type_name("T");
  command->add_option("--bytes", a->bytes, "Longest datagram that is answered (4096)")
      ->type_name("B");
  command->add_option("--seconds", a->seconds, "End after so long")
      ->check(tool::seconds_between(0.0, 1e9))
      ->type_name("S");
  command->footer(
      "Examples:\n"
      "  ./echo serve                                 on 127.0.0.1:7777, until Ctrl-C\n"
      "  ./echo serve --device host:0 --port 0        on the CPU's backend, on a free port\n"
      "  ./echo serve --by block --blocks 64 --seconds 10\n\n"
      "At the end it says how many datagrams it answered, and the sum of all their bytes, which "
      "the kernel made.\n"
      "Exit code: 0; 1 if the device failed; 2 if nothing could be started; 130 on Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return serve(*a); }; });
}

}  // namespace grosr::echo
