// queens: the N queens problem by tasks that fork and join.
#include <fmt/format.h>

#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "recursion/measure.hpp"
#include "recursion/queens.hpp"

namespace grosr::recursion {
namespace {

struct queens_job final : job {
  queens_job(const device& d, const runtime_options& o, std::uint32_t n_, std::uint32_t base_)
      : n(n_), base(base_), program(d, o) {}

  void run(const progress_callback& between) override { count = program.run(n, base, between); }
  runtime_stats stats() override { return program.stats(); }
  void run_on_cpu() override { on_cpu = queens_on_host(n); }
  bool is_small() const override { return n <= 12; }
  std::string name() const override { return fmt::format("{} queens", n); }
  std::string outcome() const override {
    return fmt::format("{} queens: {} solutions", n, tool::grouped(count));
  }
  std::string outcome_json() const override {
    return fmt::format(R"({{"n":{},"base":{},"solutions":{}}})", n, base, count);
  }
  std::string wrong() const override {
    if (count != queens_number(n)) return fmt::format("there are {} solutions", queens_number(n));
    if (on_cpu && count != *on_cpu) return fmt::format("the CPU counts {}", *on_cpu);
    return "";
  }
  std::pair<std::string, double> work() const override {
    return {"solutions", static_cast<double>(count)};
  }

  std::uint32_t n, base;
  queens program;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> on_cpu;
};

int run(const std::string& n_text, const std::string& base_text, const program_options& o) {
  const auto n = static_cast<std::uint32_t>(tool::parse_number("N", n_text, 1, queens_most));
  const auto base =
      static_cast<std::uint32_t>(tool::parse_number("--base", base_text, 0, queens_most_base));
  const device where = tool::pick_device(o.device);
  tool::json_file file(o.json);
  queens_job j(where, o.for_runtime(), n, base);
  return measure(j, "queens", o, where, std::move(file));
}

}  // namespace
}  // namespace grosr::recursion

int main(int argc, char** argv) {
  CLI::App program{
      "Counts the ways to place N queens on a board of N by N so that none attacks another: a task "
      "a queen, which forks one for each place in the next row and joins their counts",
      "queens"};
  grosr::recursion::program_options o;
  std::string n, base = "5";
  program.add_option("N", n, "How many queens, 1 to 23; 16 have 14,772,512 solutions")->required();
  program
      .add_option("--base", base,
                  "A task counts the last K rows by itself, 0 to 12: more make fewer, longer tasks")
      ->type_name("K")
      ->capture_default_str();
  o.add_to(program);
  program.footer(
      "The first queen stands in the left half; mirrored solutions are counted twice. The count "
      "is\n"
      "compared with the published one, and with --check counted by one CPU thread too, "
      "plainly.\n\n"
      "Examples:\n"
      "  queens 12\n"
      "  queens 16 --base 6 --repeat 5 --json queens.json\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv,
                                  [&] { return grosr::recursion::run(n, base, o); });
}
