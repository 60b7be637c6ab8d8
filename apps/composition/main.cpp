// composition: works put together from matrix operations, computed in five ways: with operations
// that copy for themselves, by hand, and as a dataflow graph.
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
  std::vector<std::vector<float>> got;
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
  row r(fmt::format("{}, side {}", w.name, w.side));
  for (const named_way* how : ways) {
    all.push_back(measure(d, w, *how, rounds));
    const std::string key = fmt::format("{}_us", how->name);
    r.set(key, all.back().us.median());
  }
  // By plain loops where that does not take long, else by one thread that does one thing after the
  // other; all ways run the same kernels.
  const bool plainly = w.what != operation::gemm || w.side <= 128;
  const auto expected = plainly ? compute_plainly(w, rounds - 1)
                                : make_modular_by_one_thread(d, w)->run(rounds - 1, 1);
  for (const measured& m : all) {
    const std::string wrong = first_wrong(w, m.got, expected);
    r.check(wrong.empty(), fmt::format("{}: {}", m.how->name, wrong));
  }
  const measured& last = all.back();
  const std::string key = fmt::format("{}_us", last.how->name);
  for (const measured& m : all)
    if (&m != &last) r.baseline(m.how->text, key, m.us.median());
  const double least = static_cast<double>((w.inputs + w.outputs.size()) * w.bytes());
  r.set("copied_bytes", last.bytes)
      .limit("inputs there and outputs back, once", "copied_bytes", least);
  return r;
}

int run(const composition_options& o) {
  const device where = tool::pick_device(o.device);
  const bool gpu = where.is_cuda();
  const auto rounds =
      static_cast<unsigned>(o.rounds ? tool::parse_number("--rounds", *o.rounds, 1, 100'000)
                            : gpu    ? 20
                                     : 2);
  std::vector<const named_way*> ways;
  for (const named_way& way : all_ways())
    if (o.ways.empty() || std::find(o.ways.begin(), o.ways.end(), way.name) != o.ways.end())
      ways.push_back(&way);
  tool::report out("composition", where, tool::json_file(o.json), tool::report::style::full);
  try {
    for (const operation what : {operation::gemm, operation::madd, operation::mcopy}) {
      if (!o.works.empty() &&
          std::find(o.works.begin(), o.works.end(), name_of(what)) == o.works.end())
        continue;
      std::vector<std::uint32_t> sides{64, 128, 256};
      if (what != operation::gemm) sides = {256, 512, 1024};
      if (!gpu) sides = {8};
      if (o.side)
        sides = {static_cast<std::uint32_t>(tool::parse_number("--side", *o.side, 1, 8192))};
      for (const bool is_tree : {true, false}) {
        if (o.shape != "both" && (o.shape == "tree") != is_tree) continue;
        for (const std::uint32_t side : sides)
          out.add(compare(where, is_tree ? tree(what, side, 6) : columns(what, side, 6, 10), ways,
                          rounds));
      }
    }
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
      "Trees and columns of matrix operations, computed by operations that copy for themselves, by "
      "hand, and as a dataflow graph",
      "composition"};
  composition_options o;
  std::vector<std::string> ways;
  for (const named_way& way : all_ways()) ways.push_back(way.name);
  program.add_option("WORK", o.works, "gemm, madd, mcopy; all by default")
      ->check(CLI::IsMember({"gemm", "madd", "mcopy"}));
  program.add_option("--device", o.device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  program
      .add_option("--shape", o.shape,
                  "tree: 63 operations in 6 levels; columns: 6 of 10; both (default)")
      ->check(CLI::IsMember({"tree", "columns", "both"}))
      ->type_name("S");
  program
      .add_option(
          "--side", o.side,
          "Of the matrices; on GPUs 64 to 256 for gemm and 256 to 1024 for the others, else 8")
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
      "  composition gemm --shape tree --side 1024 --json gemm.json\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
