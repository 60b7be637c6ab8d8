// composition: works put together from operations, computed in five ways: with operations that copy
// for themselves, by hand, and as a dataflow graph.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "measure/report.hpp"
#include "measure/session.hpp"
#include "ways.hpp"
#include "works/works.hpp"

namespace grosr::composition {
namespace {

using tool::row;

struct composition_options {
  std::optional<std::string> device, json, side, rounds;
  std::vector<std::string> works, ways;
  std::string shape = "both";
};

struct measured {
  const named_way* how;
  tool::samples us;  // a round
  double bytes = 0;  // that it copied in a round
  arrays got;
};

measured measure(const device& d, const work& w, const named_way& how, unsigned rounds) {
  const auto way = how.make(d, w);
  unsigned next = 0;
  const auto once = [&] {
    auto got = way->run(next, rounds);
    next += rounds;
    return got;
  };
  measured m{&how, {}, 0, once()};  // the first time, also what is made then is made
  std::vector<double> us;
  const auto began = tool::clock::now();
  while (us.size() < 3 || (us.size() < 15 && tool::microseconds_since(began) < 1e6)) {
    tool::interrupt::check();
    us.push_back(tool::timed([&] { m.got = once(); }) / rounds);
  }
  m.bytes = static_cast<double>(way->copied_bytes()) / next;
  m.us = tool::samples(std::move(us));
  // All ways are compared for the same round.
  m.got = way->run(0, rounds);
  return m;
}

row compare(const device& d, const work& w, const std::vector<const named_way*>& ways,
            unsigned rounds) {
  std::vector<measured> all;
  row r(w.name);
  for (const named_way* how : ways) {
    all.push_back(measure(d, w, *how, rounds));
    const std::string key = fmt::format("{}_us", how->name);
    r.set(key, all.back().us.median());
  }
  // By plain loops where that does not take long, else by one thread that does one thing after the
  // other; all ways run the same kernels.
  const arrays expected = w.plainly ? compute_plainly(w, rounds - 1)
                                    : make_modular_by_one_thread(d, w)->run(rounds - 1, 1);
  for (const measured& m : all) {
    const std::string wrong = first_wrong(w, m.got, expected);
    r.check(wrong.empty(), fmt::format("{}: {}", m.how->name, wrong));
  }
  const measured& last = all.back();
  const std::string key = fmt::format("{}_us", last.how->name);
  for (const measured& m : all)
    if (&m != &last) r.baseline(m.how->text, key, m.us.median());
  r.set("copied_bytes", last.bytes)
      .limit("inputs there and outputs back, once", "copied_bytes",
             static_cast<double>(w.outside_bytes()));
  return r;
}

const std::vector<std::string> work_names{"gemm", "madd", "mcopy",   "bitonic",
                                          "fdtd", "pca",  "group-by"};

std::vector<std::uint32_t> sides_of(const composition_options& o, const std::string& name,
                                    bool gpu) {
  const std::uint32_t least = name == "pca" ? 4 : 1;
  if (o.side)
    return {
        static_cast<std::uint32_t>(tool::parse_number("--side of " + name, *o.side, least, 8192))};
  if (!gpu) return {8};
  if (name == "gemm") return {64, 128, 256};
  if (name == "fdtd") return {512, 1024};
  if (name == "pca") return {256, 512};
  return {256, 512, 1024};
}

void choose(const composition_options& o, const std::string& name, bool gpu,
            std::vector<work>& works) {
  for (const operation what : {operation::gemm, operation::madd, operation::mcopy}) {
    if (name != name_of(what)) continue;
    for (const bool is_tree : {true, false}) {
      if (o.shape != "both" && (o.shape == "tree") != is_tree) continue;
      for (const std::uint32_t side : sides_of(o, name, gpu))
        works.push_back(is_tree ? tree(what, side, 6) : columns(what, side, 6, 10));
    }
  }
  if (name == "fdtd")
    for (const unsigned time_steps : {5, 10})
      for (const std::uint32_t side : sides_of(o, name, gpu))
        works.push_back(fdtd(side, time_steps));
  if (name == "pca")
    for (const unsigned iterations : {10, 54})
      for (const std::uint32_t side : sides_of(o, name, gpu))
        works.push_back(pca(side, iterations));
  const std::vector<std::uint32_t> sizes =
      gpu ? std::vector<std::uint32_t>{1 << 16, 1 << 20} : std::vector<std::uint32_t>{1 << 12};
  for (const std::uint32_t size : sizes) {
    if (name == "bitonic") works.push_back(bitonic_sort(size));
    if (name == "group-by") works.push_back(group_by(size, gpu ? 256 : 64));
  }
}

int run(const composition_options& o) {
  const device where = tool::pick_device(o.device);
  const bool gpu = where.is_cuda();
  if (o.side) tool::parse_number("--side", *o.side, 1, 8192);  // also for works that have none
  const auto rounds =
      static_cast<unsigned>(o.rounds ? tool::parse_number("--rounds", *o.rounds, 1, 100'000)
                            : gpu    ? 20
                                     : 2);
  std::vector<const named_way*> ways;
  for (const named_way& way : all_ways())
    if (o.ways.empty() || std::find(o.ways.begin(), o.ways.end(), way.name) != o.ways.end())
      ways.push_back(&way);
  std::vector<work> works;
  for (const std::string& name : work_names)
    if (o.works.empty() || std::find(o.works.begin(), o.works.end(), name) != o.works.end())
      choose(o, name, gpu, works);
  tool::report out("composition", where, tool::json_file(o.json), tool::report::style::full);
  try {
    for (const work& w : works) out.add(compare(where, w, ways, rounds));
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
}  // namespace grosr::composition

int main(int argc, char** argv) {
  using namespace grosr::composition;
  CLI::App program{
      "Matrix operations in trees and columns, a sort, a field simulation, principal components, "
      "and grouping, computed by operations that copy for themselves, by hand, and as a dataflow "
      "graph",
      "composition"};
  composition_options o;
  std::vector<std::string> ways;
  for (const named_way& way : all_ways()) ways.push_back(way.name);
  program
      .add_option("WORK", o.works, fmt::format("{}; all by default", fmt::join(work_names, ", ")))
      ->check(CLI::IsMember(work_names));
  program.add_option("--device", o.device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  program
      .add_option(
          "--shape", o.shape,
          "Of gemm, madd and mcopy: tree: 63 operations in 6 levels; columns: 6 of 10; both "
          "(default)")
      ->check(CLI::IsMember({"tree", "columns", "both"}))
      ->type_name("S");
  program
      .add_option(
          "--side", o.side,
          "Of the matrices, and of the field of fdtd; on GPUs 64 to 256 for gemm, 512 and 1024 for "
          "fdtd, 256 and 512 for pca, 256 to 1024 for madd and mcopy, else 8")
      ->type_name("N");
  program.add_option("--rounds", o.rounds, "New inputs in each measured run; 20 on GPUs, else 2")
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
      "  composition\n"
      "  composition gemm --shape tree --side 1024 --json gemm.json\n"
      "  composition fdtd pca --side 256 --way by-hand --way flow\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
