// fib: Fibonacci numbers by tasks that fork and join.
#include <fmt/format.h>

#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "recursion/fib.hpp"
#include "recursion/measure.hpp"

namespace grosr::recursion {
namespace {

struct fib_job final : job {
  fib_job(const device& d, const runtime_options& o, std::uint32_t n_) : n(n_), program(d, o) {}

  void run(const progress_callback& between) override { number = program.run(n, between); }
  runtime_stats stats() override { return program.stats(); }
  void run_on_cpu() override { on_cpu = fib_on_host(n); }
  bool is_small() const override { return n <= 32; }
  std::string name() const override { return fmt::format("fib {}", n); }
  std::string outcome() const override {
    return fmt::format("fib({}) = {}", n, tool::grouped(number));
  }
  std::string outcome_json() const override {
    return fmt::format(R"({{"n":{},"fib":{}}})", n, number);
  }
  std::string wrong() const override {
    if (number != fib_number(n)) return fmt::format("fib({}) is {}", n, fib_number(n));
    if (on_cpu && number != *on_cpu) return fmt::format("the CPU computes {}", *on_cpu);
    return "";
  }
  std::pair<std::string, double> work() const override {
    return {"calls", static_cast<double>(fib_calls(n))};
  }

  std::uint32_t n;
  fib program;
  std::uint64_t number = 0;
  std::optional<std::uint64_t> on_cpu;
};

int run(const std::string& n, const program_options& o) {
  const auto number = static_cast<std::uint32_t>(tool::parse_number("N", n, 0, fib_most));
  const device where = tool::pick_device(o.device);
  tool::json_file file(o.json);
  fib_job j(where, o.for_runtime(), number);
  return measure(j, "fib", o, where, std::move(file));
}

}  // namespace
}  // namespace grosr::recursion

int main(int argc, char** argv) {
  CLI::App program{
      "The N-th Fibonacci number by its definition, fib(n) = fib(n - 1) + fib(n - 2): each call is "
      "a task that forks two and joins them, so the time is that of forks and joins",
      "fib"};
  grosr::recursion::program_options o;
  std::string n;
  program.add_option("N", n, "Which, 0 to 60; N = 40 makes 331 million calls")->required();
  o.add_to(program);
  program.footer(
      "calls: the recursion's, 2 fib(N + 1) - 1. tasks: calls and the continuations that add two\n"
      "numbers. The result is compared with the sum from below, and with --check the same "
      "recursion\n"
      "runs on one CPU thread.\n\n"
      "Examples:\n"
      "  fib 30\n"
      "  fib 40 --memory 64M --repeat 5 --json fib.json\n\n"
      "Exit code: 0; 1 if a result was wrong; 2 if nothing could be started; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] { return grosr::recursion::run(n, o); });
}
