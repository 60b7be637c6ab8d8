// `store compare`: the same clients against tasks on a device and against threads of the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "commands.hpp"
#include "drive.hpp"
#include "measure/session.hpp"
#include "net/socket.hpp"
#include "server.hpp"

namespace grosr::store {
namespace {

using tool::row;

struct options {
  std::optional<std::string> device, json;
  std::vector<std::string> bytes{"100", "1024"}, threads{"1", "4"}, pipelines{"1", "16"};
  std::string clients = "0", connections = "0", repeats = "3", looks = "16", batch = "0";
  double seconds = 0.3;
};

struct bench {
  tool::session& s;
  device_options kernel;
  unsigned clients, connections, repeats;
  double seconds;
};

/// Drives a server that `start` starts; the row has the run of the median rate.
row measured(const bench& b, const std::string& name, unsigned threads, const drive_options& how,
             auto&& start) {
  server_options o;
  o.name = tool::name_of("127.0.0.1", 0);
  o.threads = threads;
  std::vector<driven> runs;
  tool::progress shown(name, b.repeats);
  const auto server = start(o);
  std::uint64_t misses = 0, answered = 0;
  for (unsigned i = 0; i < b.repeats; ++i, shown.next()) {
    drive_options d = how;
    d.server = server->name();
    try {
      runs.push_back(drive(d));
    } catch (...) {
      server->check();  // it may know why
      throw;
    }
    server->check();
    misses += runs.back().misses;
    answered += runs.back().answered;
  }
  const tool::calls_made calls = server->calls();
  const totals t = server->stop();
  const std::uint64_t items = server->items();
  const auto rate = [](const driven& d) { return static_cast<double>(d.answered) / d.seconds; };
  std::sort(runs.begin(), runs.end(),
            [&](const driven& x, const driven& y) { return rate(x) < rate(y); });
  const driven& m = runs[runs.size() / 2];
  row r(name);
  r.set("bytes", how.bytes)
      .set("threads", threads)
      .set("pipeline_requests", how.pipeline)
      .set("requests_per_s", rate(m))
      .set("min_requests_per_s", rate(runs.front()))
      .set("max_requests_per_s", rate(runs.back()))
      .set("p50_us", m.round_trip.median())
      .set("p99_us", m.round_trip.quantile(0.99));
  if (m.answered != 0)
    r.set("server_cpu_a_request_us", m.others_cpu_s * 1e6 / static_cast<double>(m.answered));
  calls.add_to(r);
  r.check(m.answered != 0, "no request was answered")
      .check(misses == 0, tool::grouped(misses) + " keys that were set were not found")
      .check(t.gets + t.sets >= answered && t.hits == t.gets && t.refused == 0,
             "the server counts other requests than its clients made")
      .check(items == how.keys,
             tool::grouped(items) + " keys are there in the end, not " + tool::grouped(how.keys));
  return r;
}

void compare_at(const bench& b, unsigned threads, unsigned pipeline, unsigned bytes) {
  drive_options how;
  how.bytes = bytes;
  how.keys = b.s.sized(10'000u, 500u);
  how.clients = b.clients;
  how.connections = b.connections;
  how.pipeline = pipeline;
  how.seconds = b.seconds;
  const std::string at = fmt::format(", {} B, {} thread{}, pipeline {}", bytes, threads,
                                     threads == 1 ? "" : "s", pipeline);
  row cpu = measured(b, "CPU, epoll" + at, threads, how,
                     [](const server_options& o) { return serve_on_cpu(o); });
  b.s.out.add(cpu);
  row r = measured(b, "kernel, warps" + at, threads, how,
                   [&](const server_options& o) { return serve_on(b.s.where, o, b.kernel); });
  const double one = cpu.value("requests_per_s");
  r.baseline("CPU, epoll", "requests_per_s", one);
  b.s.out.add(r);
}

int compare(const options& a) {
  const auto number = [](const char* what, const std::string& text, unsigned least, unsigned most) {
    return static_cast<unsigned>(tool::parse_number(what, text, least, most));
  };
  const auto numbers = [&](const char* what, const std::vector<std::string>& all, unsigned least,
                           unsigned most) {
    std::vector<unsigned> n;
    for (const auto& text : all) n.push_back(number(what, text, least, most));
    return n;
  };
  device_options k;
  k.looks = number("--looks", a.looks, 0, 1000);
  k.batch = number("--batch", a.batch, 0, 256);
  unsigned clients = number("--clients", a.clients, 0, 256);
  if (clients == 0) clients = std::clamp(std::thread::hardware_concurrency() / 2, 1u, 8u);
  const unsigned repeats = number("--repeats", a.repeats, 1, 1000);
  const auto sizes = numbers("--bytes", a.bytes, 0, 8192);
  const auto threads = numbers("--threads", a.threads, 1, 64);
  const auto pipelines = numbers("--pipeline", a.pipelines, 1, 64);
  const device d = tool::pick_device(a.device);
  unsigned connections = number("--connections", a.connections, 0, 256);
  if (connections == 0) connections = d.is_cuda() ? 16 : 4;
  k.workers = usual_workers(d);
  k.connections = clients * connections + 1;
  tool::report out("store", d, tool::json_file(a.json));
  tool::session s{d, out, {}, repeats};
  try {
    for (const unsigned t : threads)
      for (const unsigned p : pipelines)
        for (const unsigned bytes : sizes)
          compare_at({s, k, clients, connections, repeats, a.seconds}, t, p, bytes);
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
      "compare",
      "Measure: tasks on the device beside as many threads of the CPU, with the same clients");
  auto a = std::make_shared<options>();
  command->add_option("--device", a->device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command->add_option("--bytes", a->bytes, "Sizes of values (100 1024)")->type_name("B");
  command->add_option("--threads", a->threads, "Service threads, and the CPU's threads (1 4)")
      ->type_name("T");
  command->add_option("--pipeline", a->pipelines, "Requests that a connection has under way (1 16)")
      ->type_name("P");
  command->add_option("--clients", a->clients, "Threads that ask; 0: chosen")->type_name("N");
  command->add_option("--connections", a->connections, "Of each of these threads; 0: chosen")
      ->type_name("N");
  command
      ->add_option("--looks", a->looks,
                   "How often a task receives what is there before it awaits more (16)")
      ->type_name("N");
  command->add_option("--batch", a->batch, "Calls that a service thread takes at once; 0: chosen")
      ->type_name("N");
  command->add_option("--seconds", a->seconds, "How long to count (0.3)")
      ->check(tool::seconds_between(0.05, 1e6))
      ->type_name("S");
  command->add_option("--repeats", a->repeats, "How often to measure (3)")->type_name("N");
  command->add_option("--json", a->json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  store compare --json store.json\n"
      "  store compare --device host:0 --bytes 100 --threads 1 --pipeline 1\n\n"
      "Exit code: 0; 1 if an answer was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  command->callback([=, &chosen] { chosen = [=] { return compare(*a); }; });
}

}  // namespace grosr::store
