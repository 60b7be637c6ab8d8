// `echo compare`: the same clients against kernels and against threads of the CPU.
#include <fmt/format.h>

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "commands.hpp"
#include "drive.hpp"
#include "measure/session.hpp"
#include "net/socket.hpp"
#include "net/thread_team.hpp"
#include "server.hpp"

namespace grosr::echo {
namespace {

using tool::row;

struct asked {
  std::optional<std::string> device, json;
  std::vector<std::string> bytes{"64", "256", "1024", "4096"}, threads{"1", "4"};
  std::string clients = "0", repeats = "3", blocks = "0", batch = "0", lost_after = "50";
  double seconds = 0.3;
};

struct bench {
  tool::session& s;
  kernel_options kernel;
  drive_options drive;
  unsigned repeats;
};

constexpr unsigned mmsg_batch = 32;
constexpr double longest_start_s = 5;

std::vector<unsigned> numbers(const char* what, const std::vector<std::string>& all, unsigned least,
                              unsigned most) {
  std::vector<unsigned> n;
  for (const auto& text : all)
    n.push_back(static_cast<unsigned>(tool::parse_number(what, text, least, most)));
  return n;
}

/// What `threads` threads make of the two calls a datagram alone: each sends to itself, and
/// receives.
double loopback_limit(unsigned threads, std::uint32_t bytes) {
  tool::thread_team all(threads, [bytes](unsigned, const std::atomic<bool>& ends,
                                         tool::thread_team::tally& counts) {
    sockaddr_in name = tool::name_of("127.0.0.1", 0);
    const auto sockets = tool::open_sockets(SOCK_DGRAM, name, 1);
    const int s = sockets[0].fd();
    std::vector<char> text(bytes);
    const auto* to = reinterpret_cast<const sockaddr*>(&name);
    const timeval look{0, 50'000};
    ::setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &look, sizeof look);
    while (!ends) {
      sockaddr_in from{};
      socklen_t length = sizeof from;
      if (::sendto(s, text.data(), bytes, 0, to, sizeof name) < 0) continue;
      if (::recvfrom(s, text.data(), bytes, 0, reinterpret_cast<sockaddr*>(&from), &length) >= 0)
        counts.add(counts.done, 1);
    }
  });
  const auto f = all.measure(0.05, 0.2);
  return static_cast<double>(f.done) / f.seconds;
}

/// Drives a server that `start` starts; the row has the run of the median rate.
row measured(const bench& b, const std::string& name, const server_options& o, auto&& start) {
  std::vector<driven> runs;
  tool::progress shown(name, b.repeats);
  const auto server = start(o);
  std::uint64_t wrong = 0, lost = 0, echoed = 0;
  drive_options d = b.drive;
  d.server = server->name();
  d.bytes = o.bytes;
  for (d.seconds = 0.05; drive(d).echoed == 0 && d.seconds < longest_start_s; d.seconds *= 2)
    tool::interrupt::check();  // until both are awake
  d.seconds = b.drive.seconds;
  for (unsigned i = 0; i < b.repeats; ++i, shown.next()) {
    runs.push_back(drive(d));
    server->check();
    wrong += runs.back().wrong;
    lost += runs.back().lost;
    echoed += runs.back().echoed;
  }
  const tool::calls_made calls = server->calls();
  const totals t = server->stop();
  const auto rate = [](const driven& d) { return static_cast<double>(d.echoed) / d.seconds; };
  std::sort(runs.begin(), runs.end(),
            [&](const driven& x, const driven& y) { return rate(x) < rate(y); });
  const driven& m = runs[runs.size() / 2];
  row r(name);
  r.set("bytes", o.bytes)
      .set("threads", o.threads)
      .set("packets_per_s", rate(m))
      .set("gb_per_s", rate(m) * o.bytes / 1e9)
      .set("min_packets_per_s", rate(runs.front()))
      .set("max_packets_per_s", rate(runs.back()))
      .set("p50_us", m.round_trip.median())
      .set("p99_us", m.round_trip.quantile(0.99));
  if (m.echoed != 0)
    r.set("server_cpu_a_packet_us", m.others_cpu_s * 1e6 / static_cast<double>(m.echoed));
  r.set("lost_packets", static_cast<double>(lost));
  calls.add_to(r);
  r.check(wrong == 0, tool::grouped(wrong) + " echoes held other bytes than were sent")
      .check(m.echoed != 0, "nothing came back")
      .check(t.datagrams >= echoed && t.bytes == t.datagrams * o.bytes,
             "the server counts other datagrams than its clients got")
      .check(t.failed == 0, tool::grouped(t.failed) + " calls of the server failed");
  return r;
}

void compare_at(const bench& b, unsigned threads, std::uint32_t bytes) {
  server_options o;
  o.name = tool::name_of("127.0.0.1", 0);
  o.threads = o.sockets = threads;
  o.bytes = bytes;
  const std::string at =
      fmt::format(", {} B, {} thread{}", bytes, threads, threads == 1 ? "" : "s");
  const double limit = loopback_limit(threads, bytes);
  row plain = measured(b, "CPU, recvfrom and sendto" + at, o,
                       [](const server_options& s) { return serve_on_cpu(s, 1); });
  row batched = measured(b, "CPU, recvmmsg and sendmmsg" + at, o,
                         [](const server_options& s) { return serve_on_cpu(s, mmsg_batch); });
  const double one = plain.value("packets_per_s"), many = batched.value("packets_per_s");
  const std::string limit_text = "threads that send to themselves and receive";
  b.s.out.add(plain.limit(limit_text, "packets_per_s", limit));
  b.s.out.add(batched.limit(limit_text, "packets_per_s", limit));
  struct kind {
    const char* name;
    sys::granularity who;
    bool polls;
  };
  for (const kind k : {kind{"kernel, warps", sys::granularity::warp, false},
                       kind{"kernel, blocks", sys::granularity::block, false},
                       kind{"kernel, warps that poll", sys::granularity::warp, true}}) {
    kernel_options how = b.kernel;
    how.who = k.who;
    how.polls = k.polls;
    row r = measured(b, k.name + at, o,
                     [&](const server_options& s) { return serve_on(b.s.where, s, how); });
    r.limit(limit_text, "packets_per_s", limit)
        .baseline("CPU, recvfrom and sendto", "packets_per_s", one)
        .baseline("CPU, recvmmsg and sendmmsg", "packets_per_s", many);
    if (k.who == sys::granularity::warp && !k.polls)
      r.at_least("packets_per_s", one, "the CPU's server with as many threads");
    b.s.out.add(r);
  }
}

void compare_all(const bench& b, const asked& a) {
  const auto sizes = numbers("--bytes", a.bytes, least_bytes, 65507);
  for (const unsigned threads : numbers("--threads", a.threads, 1, 64))
    for (const unsigned bytes : sizes) compare_at(b, threads, bytes);
}

int compare(const asked& a) {
  const auto number = [](const char* what, const std::string& text, unsigned least, unsigned most) {
    return static_cast<unsigned>(tool::parse_number(what, text, least, most));
  };
  kernel_options k;
  k.groups = number("--blocks", a.blocks, 0, 4096);
  k.batch = number("--batch", a.batch, 0, 256);
  drive_options o;
  o.clients = number("--clients", a.clients, 0, 256);
  if (o.clients == 0) o.clients = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u);
  o.lost_after_ms = number("--lost-after", a.lost_after, 1, 60'000);
  o.seconds = a.seconds;
  const unsigned repeats = number("--repeats", a.repeats, 1, 1000);
  numbers("--bytes", a.bytes, least_bytes, 65507);
  numbers("--threads", a.threads, 1, 64);
  const device d = tool::pick_device(a.device);
  tool::report out("echo", d, tool::json_file(a.json));
  tool::session s{d, out, {}, repeats};
  try {
    compare_all({s, k, o, repeats}, a);
  } catch (const tool::interrupt::interrupted&) {
    out.interrupted();
    out.finish();
    return tool::exit_interrupted;
  } catch (const std::exception& e) {
    out.failed(e.what());
    out.finish();
    throw;
  }
  return out.finish();
}

}  // namespace

void add_compare_command(CLI::App& program, action& chosen) {
  auto* command = program.add_subcommand(
      "compare", "Measure: kernels beside as many threads of the CPU, with the same clients");
  auto a = std::make_shared<asked>();
  command->add_option("--device", a->device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command->add_option("--bytes", a->bytes, "Sizes of datagrams (64 256 1024 4096)")->type_name("B");
  command
      ->add_option("--threads", a->threads, "Service threads, sockets, and the CPU's threads (1 4)")
      ->type_name("T");
  command->add_option("--clients", a->clients, "Threads that send; 0: chosen")->type_name("N");
  command->add_option("--blocks", a->blocks, "How many warps or blocks answer; 0: chosen")
      ->type_name("N");
  command->add_option("--batch", a->batch, "Calls that a service thread takes at once; 0: chosen")
      ->type_name("N");
  command
      ->add_option("--lost-after", a->lost_after, "When one that is not back counts as lost (50)")
      ->type_name("MS");
  command->add_option("--seconds", a->seconds, "How long to count (0.3)")
      ->check(tool::seconds_between(0.05, 1e6))
      ->type_name("S");
  command->add_option("--repeats", a->repeats, "How often to measure (3)")->type_name("N");
  command->add_option("--json", a->json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  ./echo compare --json echo.json\n"
      "  ./echo compare --device host:0 --bytes 64 --threads 1\n\n"
      "Exit code: 0; 1 if an echo was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return compare(*a); }; });
}

}  // namespace grosr::echo
