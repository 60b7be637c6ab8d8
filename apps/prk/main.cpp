// prk: four of the Parallel Research Kernels as dataflow graphs, beside CUDA by hand.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "measure/report.hpp"
#include "measure/samples.hpp"
#include "ways.hpp"

namespace grosr::prk {
namespace {

using tool::row;

struct prk_options {
  std::optional<std::string> device, json, size, iterations;
  std::vector<std::string> kernels, ways;
};

const std::vector<std::string> kernel_names{"p2p", "stencil", "transpose", "dgemm"};

struct measured {
  const named_way* how = nullptr;
  double iterations_per_s = 0;
  std::optional<flow_counts> counts;
  std::string wrong;
};

/// The largest divisor of `iterations` that is no more than `most`.
unsigned iterations_of_round(unsigned iterations, unsigned most) {
  unsigned found = std::min(iterations, most);
  while (iterations % found != 0) --found;
  return found;
}

measured measure(const device& d, const problem& p, const named_way& how, unsigned iterations) {
  const unsigned unrolled = iterations_of_round(iterations, p.most_unrolled);
  const auto way = how.make(d, p, unrolled);
  std::uint64_t done = 0;
  const auto once = [&] {
    way->run(iterations / unrolled);
    done += iterations;
  };
  once();  // the first time, also what is made then is made
  std::vector<double> us;
  const auto began = tool::clock::now();
  while (us.size() < 3 || (us.size() < 15 && tool::microseconds_since(began) < 1e6)) {
    tool::interrupt::check();
    us.push_back(tool::timed(once));
  }
  measured m;
  m.how = &how;
  m.iterations_per_s = iterations * 1e6 / tool::samples(std::move(us)).median();
  m.counts = way->counts();
  m.wrong = p.check(done, way->results());
  return m;
}

row compare(const device& d, const problem& p, const std::vector<const named_way*>& ways,
            unsigned iterations) {
  std::vector<measured> all;
  row r(p.name);
  for (const named_way* how : ways) {
    all.push_back(measure(d, p, *how, iterations));
    const measured& m = all.back();
    const std::string rate = fmt::format("{}_{}", how->name, p.rate_key);
    r.set(fmt::format("{}_iterations_per_s", how->name), m.iterations_per_s)
        .set(rate, m.iterations_per_s * p.work)
        .check(m.wrong.empty(), fmt::format("{}: {}", how->name, m.wrong));
  }
  const measured& last = all.back();
  const std::string key = fmt::format("{}_iterations_per_s", last.how->name);
  for (const measured& m : all)
    if (&m != &last) r.baseline(m.how->text, key, m.iterations_per_s);
  if (last.counts) {
    r.set("started_nodes", static_cast<double>(last.counts->started_nodes))
        .set("copied_bytes", static_cast<double>(last.counts->copied_bytes))
        .limit("what flows, there once", "copied_bytes", static_cast<double>(p.flowing_bytes()));
    for (const std::string& event : last.counts->events) r.note(event);
  }
  return r;
}

std::uint32_t side_of(const prk_options& o, const std::string& name, std::uint32_t on_host,
                      std::uint32_t on_gpu, std::uint32_t least, std::uint32_t most, bool gpu) {
  if (!o.size) return gpu ? on_gpu : on_host;
  return static_cast<std::uint32_t>(tool::parse_number("--size of " + name, *o.size, least, most));
}

problem make_problem(const prk_options& o, const std::string& name, bool gpu) {
  constexpr std::uint32_t most = 16'384;
  if (name == "p2p") {
    const std::uint32_t side = side_of(o, name, 50, 1024, 2, most_tiles * largest_tile + 1, gpu);
    // On the host backend a small matrix has several tiles, too.
    return p2p(side, gpu ? largest_tile : std::min((side - 1 + 3) / 4, largest_tile));
  }
  if (name == "stencil")
    return stencil(side_of(o, name, 50, 4096, 2 * stencil_radius + 1, most, gpu));
  if (name == "transpose") return transpose(side_of(o, name, 50, 4096, 1, most, gpu));
  return dgemm(side_of(o, name, 50, 1024, 2, most, gpu));
}

int run(const prk_options& o) {
  const device where = tool::pick_device(o.device);
  const bool gpu = where.is_cuda();
  const auto iterations = static_cast<unsigned>(
      o.iterations ? tool::parse_number("--iterations", *o.iterations, 1, 1'000'000)
      : gpu        ? 100
                   : 4);
  const auto is_chosen = [](const std::vector<std::string>& chosen, const std::string& name) {
    return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
  };
  std::vector<const named_way*> ways;
  for (const named_way& way : all_ways())
    if (is_chosen(o.ways, way.name)) ways.push_back(&way);
  std::vector<problem> problems;
  for (const std::string& name : kernel_names)
    if (is_chosen(o.kernels, name)) problems.push_back(make_problem(o, name, gpu));
  tool::report out("prk", where, tool::json_file(o.json), tool::report::style::full);
  try {
    for (const problem& p : problems) out.add(compare(where, p, ways, iterations));
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
}  // namespace grosr::prk

int main(int argc, char** argv) {
  using namespace grosr::prk;
  CLI::App program{
      "Four of the Parallel Research Kernels: a pipelined wavefront, a star-shaped stencil, a "
      "transposition, and a product of matrices, as dataflow graphs, beside CUDA by hand",
      "prk"};
  prk_options o;
  std::vector<std::string> ways;
  for (const named_way& way : all_ways()) ways.push_back(way.name);
  program
      .add_option("KERNEL", o.kernels,
                  fmt::format("{}; all by default", fmt::join(kernel_names, ", ")))
      ->check(CLI::IsMember(kernel_names));
  program.add_option("--device", o.device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  program
      .add_option("--size", o.size,
                  "Rows, and columns, of the matrices; on GPUs 1024 for p2p and dgemm, 4096 for "
                  "stencil and transpose, else 50")
      ->type_name("N");
  program.add_option("--iterations", o.iterations, "In each measured run; 100 on GPUs, else 4")
      ->type_name("N");
  program
      .add_option("--way", o.ways,
                  "Compare these alone: " + fmt::format("{}", fmt::join(ways, ", ")))
      ->check(CLI::IsMember(ways))
      ->type_name("W");
  program.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  program.footer(
      "Examples:\n"
      "  prk\n"
      "  prk p2p --size 2049 --iterations 200 --json p2p.json\n"
      "  prk stencil transpose --size 1000 --way graph --way flow\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
