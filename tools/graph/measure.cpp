#include "graph/measure.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/progress.hpp"
#include "measure/report.hpp"

namespace grosr::tool {
namespace {

using graphs::loaded, graphs::results_file;
using json = nlohmann::ordered_json;

/// Runs it so often; the times, and what was wrong in the first run that was wrong.
std::pair<samples, std::string> repeat(graph_job& job, const std::string& name, unsigned repeats,
                                       bool check) {
  progress shown(name, repeats);
  std::vector<double> us;
  std::string wrong;
  for (unsigned i = 0; i < repeats; ++i) {
    us.push_back(timed([&] { job.run([] { progress::pulse(); }); }));
    interrupt::check();
    if (check || i + 1 == repeats) job.fetch();
    if (check && wrong.empty()) wrong = job.wrong();
    shown.at(i + 1);
  }
  return {samples(us), wrong};
}

std::string result_json(const graph_job& job, const loaded& input, bool checked) {
  json j{{"graph", input.what},
         {"vertices", input.g.vertices()},
         {"edges", input.g.edges()},
         {"directed", input.g.directed}};
  job.add_result(j);
  j["checked"] = checked;
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

void measure(graph_algorithm& what, const loaded& input, unsigned repeats, bool check,
             const device& where, report& out, results_file* to, json_file& trace) {
  out.remark(fmt::format("{}: {}; {}", one_line(input.what), size_text(input.g), load_text(input)));
  const graphs::device_graph on(where, input.g);
  const auto job = what.start(input.g, on);
  const auto [times, wrong] =
      repeat(*job, fmt::format("{} of {}", what.name(), one_line(input.what)), repeats, check);
  row r(job->outcome());
  r.rate(times, "edges", job->edges());
  job->add_values(r);
  r.set("graph_bytes", static_cast<double>(on.bytes()))
      .set("search_bytes", static_cast<double>(job->bytes()))
      .set("runtime_bytes", static_cast<double>(job->runtime_bytes()))
      .set("load_s", input.seconds);
  if (input.bytes != 0) r.set("load_gb_per_s", load_gb_per_s(input));
  r.check(wrong.empty(), wrong);
  if (check && wrong.empty()) r.note("checked: " + what.checking());
  out.add(r);
  out.attach("result", result_json(*job, input, check));
  if (to != nullptr) {
    job->write(*to);
    to->finish();
  }
  if (!trace.wanted()) return;
  json t{{"displayTimeUnit", "ns"},
         {"otherData", {{"graph", input.what}, {"device", where.properties().description}}}};
  job->add_trace(t);
  trace.write(t);
}

/// Refuses to write two things to one file, or anything to the graph's.
void refuse_shared_files(const graph_run_options& o) {
  std::vector<std::pair<std::string, std::string>> seen;  // what was asked, and the file
  for (const auto& [option, path] : {std::pair{"--output", o.output}, std::pair{"--json", o.json},
                                     std::pair{"--trace", o.trace}}) {
    if (!path) continue;
    const std::string asked = fmt::format("{} {}", option, one_line(*path));
    refuse_own_input(asked, *path, o.graph.name);
    std::error_code bad;
    const std::string file = std::filesystem::weakly_canonical(*path, bad).string();
    const bool regular =
        !std::filesystem::exists(file, bad) || std::filesystem::is_regular_file(file, bad);
    for (const auto& [other, taken] : seen)
      if (regular && taken == file)
        throw usage_error(fmt::format("{}: {} is written there; give another file", asked, other));
    seen.emplace_back(asked, file);
  }
  if (o.trace == "-")
    throw usage_error("--trace -: a trace is a file that Perfetto opens; give a path");
}

}  // namespace

void graph_run_options::add_to(CLI::App& command, const graph_algorithm& what) {
  graph.add_to(command);
  if (what.takes_weights()) graph.add_weights_to(command);
  command.add_option("--device", device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  command
      .add_option("--repeat", repeat,
                  "How often to run it, 1 to 1000; 10 times on GPUs, once on the host backend")
      ->type_name("N");
  command.add_flag("--check", check, "Check the result of every run: " + what.checking());
  command
      .add_option("--output", output,
                  fmt::format("Write the result to FILE, a line a vertex: {}", what.lines()))
      ->type_name("FILE");
  if (what.traces())
    command
        .add_option(
            "--trace", trace,
            "Write to FILE, for Perfetto, when the last run did what: waves of one block, of "
            "several, steps of all; its first 512 parts")
        ->type_name("FILE");
  command.add_option("--json", json, "Also write the report to FILE; - is standard output")
      ->type_name("FILE");
}

int run_on_graph(graph_algorithm& what, const graph_run_options& o) {
  const graphs::input_options how = o.graph.options();
  what.read_options();
  const device where = pick_device(o.device);
  unsigned repeats = where.is_cuda() ? 10 : 1;
  if (o.repeat) repeats = static_cast<unsigned>(parse_number("--repeat", *o.repeat, 1, 1000));
  refuse_shared_files(o);
  std::optional<results_file> to;
  if (o.output)
    before_work([&] {
      to.emplace(fmt::format("--output {}", one_line(*o.output)), *o.output,
                 [](const graphs::work_progress&) { interrupt::check(); });
    });
  json_file file(o.json), trace(o.trace, "--trace");
  loaded input = load_graph(o.graph.name, how);
  if (input.g.vertices() == 0)
    throw usage_error(fmt::format("graph {}: {} has no vertices; give a graph with at least one",
                                  what.name(), one_line(input.what)));
  what.prepare(input);
  report out("graph " + what.name(), where, std::move(file));
  try {
    measure(what, input, repeats, o.check, where, out, to ? &*to : nullptr, trace);
  } catch (const interrupt::interrupted&) {
    out.interrupted();
    out.finish();
    return exit_interrupted;
  } catch (const std::exception& e) {
    out.failed(e.what());
    out.finish();
    throw;
  }
  return out.finish();
}

}  // namespace grosr::tool
