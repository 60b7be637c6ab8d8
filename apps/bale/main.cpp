// bale: six irregular programs, by messages of many ranks, and by one thread.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "measure/report.hpp"
#include "measure/samples.hpp"
#include "programs.hpp"
#include "ranks/messages.hpp"
#include "ranks/options.hpp"

namespace grosr::bale {
namespace {

using ranks::number_or, tool::row;

struct bale_options {
  ranks::options where;
  std::optional<std::string> json, size, nonzeros, seed, repeat;
  std::vector<std::string> programs;
};

/// The shortest of three runs: memory is there after the first.
double time_of_thread(program& what) {
  double least = 0;
  for (int i = 0; i < 3; ++i) {
    const double time = tool::timed([&] { what.run_sequentially(); });
    least = i == 0 ? time : std::min(least, time);
    tool::interrupt::check();
  }
  return least;
}

row measure(const named_program& how, const problem& p, unsigned repeats) {
  const auto what = how.make(p);
  tool::interrupt::check();
  const double thread_us = time_of_thread(*what);
  what->begin();
  row r(fmt::format("{}, {} rank{}", how.text, p.ranks, p.ranks == 1 ? "" : "s"));
  // The first run brings the kernels to the GPU.
  const unsigned before = p.where.is_cuda() ? 1 : 0;
  std::vector<double> us;
  std::uint64_t words = 0;
  for (unsigned i = 0; i < before + repeats; ++i) {
    what->clear();
    const std::uint64_t words_before = ranks::messages(what->stats()).words;
    const double time = tool::timed([&] { what->run(); });
    words = ranks::messages(what->stats()).words - words_before;
    if (i >= before) us.push_back(time);
    tool::interrupt::check();
    const std::string wrong = what->wrong();
    r.check(wrong.empty(), wrong);
  }
  const double count = what->operations();
  r.rate(tool::samples(us), how.operations, count).set(how.operations, count);
  return ranks::messages(what->stats())
      .add_to(r, "operation_words", words, count)
      .baseline("one thread of the CPU", fmt::format("{}_per_s", how.operations),
                count * 1e6 / thread_us);
}

/// Sums of columns of a row, and numbers of nonzeros, have room up to there.
constexpr std::uint64_t most_size = 1 << 26, most_nonzeros = 1000;

problem read_problem(const bale_options& o) {
  problem p{o.where.read()};
  p.size = number_or<std::uint32_t>("--size", o.size, 0, 2, most_size);
  p.nonzeros = number_or<std::uint32_t>("--nonzeros", o.nonzeros, 10, 1, most_nonzeros);
  p.seed = number_or("--seed", o.seed, 1, 0, ~std::uint64_t{0} / 4);
  return p;
}

std::uint32_t size_of(const named_program& how, const problem& p) {
  return p.size != 0 ? p.size : p.where.is_cuda() ? how.gpu_size : how.host_size;
}

std::vector<const named_program*> chosen(const bale_options& o, const problem& p) {
  std::vector<const named_program*> all;
  for (const named_program& how : all_programs()) {
    if (!o.programs.empty() &&
        std::find(o.programs.begin(), o.programs.end(), how.name) == o.programs.end())
      continue;
    if (how.operations == std::string("nonzeros") &&
        std::uint64_t{size_of(how, p)} * p.nonzeros > std::uint64_t{1} << 31)
      throw tool::usage_error(fmt::format(
          "--nonzeros: {} rows of {} nonzeros have more than 2^31 of them; give less of "
          "either",
          tool::grouped(size_of(how, p)), p.nonzeros));
    all.push_back(&how);
  }
  return all;
}

int run(const bale_options& o) {
  const problem p = read_problem(o);
  const auto repeats =
      number_or<unsigned>("--repeat", o.repeat, p.where.is_cuda() ? 10 : 1, 1, 1000);
  const std::vector<const named_program*> programs = chosen(o, p);
  tool::report out("bale", p.where, tool::json_file(o.json), tool::report::style::full);
  try {
    for (const named_program* how : programs) {
      problem of_program = p;
      of_program.size = size_of(*how, p);
      out.add(measure(*how, of_program, repeats));
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
}  // namespace grosr::bale

int main(int argc, char** argv) {
  using namespace grosr::bale;
  CLI::App program{
      "Six irregular programs, as the bale collection has them, by messages of tasks on several "
      "ranks, and by one thread of the CPU",
      "bale"};
  bale_options o;
  std::vector<std::string> names;
  for (const named_program& p : all_programs()) names.push_back(p.name);
  program
      .add_option("PROGRAM", o.programs,
                  "Run these alone: " + fmt::format("{}", fmt::join(names, ", ")))
      ->check(CLI::IsMember(names));
  program
      .add_option("--size", o.size,
                  "Updates, gathers, darts, rows or vertices (up to a power of two) of all ranks")
      ->type_name("N");
  program.add_option("--nonzeros", o.nonzeros, "Of a row of a matrix, on average, 1 to 1000; 10")
      ->type_name("N");
  program.add_option("--seed", o.seed, "Of all that is random; 1")->type_name("N");
  o.where.add_device(program);
  o.where.add_ranks(program);
  o.where.add_link(program);
  program.add_option("--repeat", o.repeat, "Measured runs, 1 to 1000; 10 on GPUs, else 1")
      ->type_name("N");
  program.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
  program.footer(
      "Examples:\n"
      "  bale\n"
      "  bale histogram gather --size 10M --ranks 4 --json bale.json\n"
      "  bale sort --size 100000 --nonzeros 20\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return run(o); });
}
