#include "measure/bench.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"

namespace grosr::tool {
namespace {

struct bench_options {
  std::optional<std::string> device, repeats;
  std::optional<std::string> json;
  bool list = false, quick = false;
  std::vector<std::string> words;  ///< NAME and its numbers
};

std::string names_of(const bench_program& program) {
  std::string names;
  for (const bench& b : program.all)
    if (!b.hidden) names += (names.empty() ? "" : ", ") + std::string(b.name);
  return names;
}

const bench& find_bench(const bench_program& program, const std::string& name) {
  for (const bench& b : program.all)
    if (b.name == name || (b.alias != nullptr && b.alias == name)) return b;
  throw usage_error(fmt::format("{}: there is no such benchmark; there are {}", one_line(name),
                                names_of(program)));
}

std::string usage_of(const bench& b) {
  std::string text = b.name;
  for (const bench_argument& a : b.arguments) text += fmt::format(" [{}]", a.name);
  return text;
}

std::string list_text(const bench_program& program) {
  std::string text;
  for (const bench& b : program.all) {
    if (b.hidden) continue;
    text += fmt::format("  {:<26} {}", usage_of(b), b.summary);
    text += b.alias != nullptr ? fmt::format(" ({})\n", b.alias) : "\n";
    for (const bench_argument& a : b.arguments)
      text += fmt::format("  {:<26}   {}: {}\n", "", a.name, a.meaning);
  }
  return text;
}

std::vector<std::uint64_t> numbers_of(const bench_program& program, const bench& b,
                                      const std::vector<std::string>& words) {
  if (words.size() - 1 > b.arguments.size())
    throw usage_error(fmt::format("{}: \"{}\" is one argument too many; usage: {} {}", b.name,
                                  one_line(words[b.arguments.size() + 1]), program.command,
                                  usage_of(b)));
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const bench_argument& a = b.arguments[i - 1];
    numbers.push_back(
        parse_number(fmt::format("{}: {}", b.name, a.name), words[i], a.least, a.most));
  }
  return numbers;
}

int run_bench(const bench_program& program, const bench_options& o) {
  if (o.list) {
    fmt::print("{}", list_text(program));
    return exit_ok;
  }
  if (o.words.empty())
    throw usage_error(fmt::format("no name was given; there are {}", names_of(program)));
  const bench& b = find_bench(program, o.words[0]);
  const auto numbers = numbers_of(program, b, o.words);
  const unsigned repeats =
      o.repeats ? static_cast<unsigned>(parse_number("--repeats", *o.repeats, 1, 1'000'000)) : 0;
  const device where = pick_device(o.device);
  report out(b.name, where, json_file(o.json));
  session s{where, out, numbers, repeats, o.quick};
  if (o.quick) out.quick();
  try {
    b.run(s);
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

}  // namespace

int run_benches(const bench_program& program, int argc, char** argv) {
  CLI::App app{program.description, program.command};
  bench_options o;
  app.add_option("NAME", o.words, "Which benchmark, and its numbers (50000, 50k, 1M)")
      ->type_name("")
      ->expected(0, 8);
  app.add_option("--device", o.device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  app.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  app.add_option("--repeats", o.repeats, "How often to measure; each benchmark has its own")
      ->type_name("N");
  app.add_flag("--quick", o.quick,
               "Small sizes and few repeats, to see that all works; no target is judged");
  app.add_flag("--list", o.list, "List the benchmarks and their numbers");
  std::string examples;
  for (const bench& b : program.all)
    if (!b.hidden) examples += fmt::format("  {}\n", b.example);
  app.footer(
      fmt::format("Benchmarks:\n{}\nExamples:\n{}\n"
                  "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; "
                  "130 on Ctrl-C.",
                  list_text(program), examples));
  return run_program(app, argc, argv, [&] { return run_bench(program, o); });
}

}  // namespace grosr::tool
