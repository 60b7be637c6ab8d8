// refine: a mesh that is fine where a ball moves through it. Its fine data lie in host memory,
// which the kernel maps, and gives back where it coarsens a block.
#include <fmt/format.h>

#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"

#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "device_mesh.hpp"
#include "footprint.hpp"
#include "host_mesh.hpp"
#include "measure/report.hpp"
#include "measure/session.hpp"

namespace grosr::refine {
namespace {

using tool::grouped;
using tool::row;

struct refine_options {
  std::optional<std::string> device, json, side, steps, threads;
};

/// All steps, with or without giving memory back; a row a step, and one in all.
row run_steps(const device& where, const mesh_shape& m, unsigned threads, bool gives_back,
              std::optional<host_result>& computed, tool::report& out) {
  const std::string name = gives_back ? "with madvise" : "without madvise";
  sys::options o;
  o.threads = threads;
  sys::server server(where, o);
  {  // what the device and the program need once is there before anything is measured
    device_mesh small(where, server, {2, 2}, gives_back);
    for (const std::uint32_t i : {0u, 1u}) small.step(i);
  }
  device_mesh mesh(where, server, m, gives_back);
  if (!computed) computed = compute_on_host(m);
  const host_result& expected = *computed;
  const std::uint64_t before = resident_bytes();
  const auto of_mesh = [&](std::uint64_t bytes) {
    return static_cast<double>(bytes > before ? bytes - before : 0);
  };
  footprint watched;
  std::vector<double> us;
  double most = 0, mean = 0;
  std::uint64_t given_back = 0;
  std::string wrong;
  tool::progress shown(name, m.steps);
  const auto began = tool::clock::now();
  for (std::uint32_t i = 0; i < m.steps; ++i) {
    step_result s;
    us.push_back(tool::timed([&] { s = mesh.step(i); }));
    row r(fmt::format("{}, step {}", name, i));
    r.set("step", i)
        .set("at_s", tool::microseconds_since(began) / 1e6)
        .set("step_us", us.back())
        .set("rss_bytes", of_mesh(resident_bytes()))
        .set("most_rss_bytes", of_mesh(watched.most()))
        .set("refined_bytes", static_cast<double>(s.refined * fine_bytes))
        .check(s.refined == expected.refined[i],
               fmt::format("{} blocks are refined, not {}", s.refined, expected.refined[i]))
        .check(s.total == expected.total, "the sum of all cells has changed");
    if (!r.valid()) wrong = fmt::format("step {}: {}", i, r.wrong());
    most = std::max(most, r.value("most_rss_bytes"));
    mean += r.value("rss_bytes") / m.steps;
    given_back += s.given_back;
    out.add(r);
    shown.at(i + 1);
  }
  std::uint64_t refused = 0;
  for (const sys::call_statistics& c : server.statistics().calls)
    if (c.name == "madvise") refused = c.errors;
  row all(name + ", all steps");
  all.time(tool::samples(us))
      .set("most_rss_bytes", most)
      .set("mean_rss_bytes", mean)
      .set("mapped_bytes", static_cast<double>(m.bytes()))
      .set("given_back_blocks", static_cast<double>(given_back))
      .check(wrong.empty(), wrong)
      .check(mesh.coarse() == expected.coarse, "cells are not those that the host computes")
      .check(refused <= 1, grouped(refused) + " calls of madvise failed");  // 1: no huge pages
  return all;
}

int run(const refine_options& o) {
  const device where = tool::pick_device(o.device);
  mesh_shape m;
  m.side = where.is_cuda() ? 32 : 4;
  m.steps = where.is_cuda() ? 40 : 12;
  unsigned threads = where.is_cuda() ? 12 : 2;
  const auto number = [](const char* what, const std::optional<std::string>& text, auto& to,
                         std::uint64_t least, std::uint64_t most) {
    if (text)
      to = static_cast<std::remove_reference_t<decltype(to)>>(
          tool::parse_number(what, *text, least, most));
  };
  number("--side", o.side, m.side, 2, 64);
  number("--steps", o.steps, m.steps, 2, 10'000);
  number("--threads", o.threads, threads, 1, 256);
  tool::report out("refine", where, tool::json_file(o.json), tool::report::style::one_line_a_row);
  try {
    std::optional<host_result> expected;
    const row with = run_steps(where, m, threads, true, expected, out);
    row without = run_steps(where, m, threads, false, expected, out);
    out.add(with);
    without.baseline("with madvise", "median_us", with.value("median_us"))
        .baseline("with madvise", "mean_rss_bytes", with.value("mean_rss_bytes"));
    out.add(without);
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
}  // namespace grosr::refine

int main(int argc, char** argv) {
  CLI::App program{
      "A mesh that is fine where a ball moves through it: the kernel maps host memory for its fine "
      "blocks, and gives back what it coarsens",
      "refine"};
  grosr::refine::refine_options o;
  program.add_option("--device", o.device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  program
      .add_option("--side", o.side,
                  "Blocks along the cube, 2 to 64; 32 on GPUs, 4 on the host backend")
      ->type_name("N");
  program.add_option("--steps", o.steps, "How many; 40 on GPUs, 12 on the host backend")
      ->type_name("N");
  program.add_option("--threads", o.threads, "Service threads; 12 on GPUs, 2 on the host backend")
      ->type_name("N");
  program.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  program.footer(
      "Examples:\n"
      "  refine\n"
      "  refine --side 48 --steps 100 --json refine.json\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
