#include "recursion/measure.hpp"

#include <fmt/format.h>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/progress.hpp"
#include "cli/text.hpp"

namespace grosr::recursion {
namespace {

tool::row run(job& j, const program_options& o, unsigned repeats) {
  tool::progress shown(j.name(), repeats);
  std::vector<double> us;
  std::string wrong;
  const runtime_stats before = j.stats();
  for (unsigned i = 0; i < repeats; ++i) {
    us.push_back(tool::timed([&] { j.run([] { tool::progress::pulse(); }); }));
    if (wrong.empty()) wrong = j.wrong();
    shown.at(i + 1);
  }
  const runtime_stats s = j.stats();
  const double tasks = static_cast<double>(s.tasks - before.tasks) / repeats;
  std::optional<double> cpu_us;
  if (o.check || (j.is_small() && !o.no_check)) cpu_us = tool::timed([&] { j.run_on_cpu(); });
  if (wrong.empty()) wrong = j.wrong();
  const tool::samples times(us);
  const auto [noun, count] = j.work();
  tool::row r(j.outcome());
  r.rate(times, "tasks", tasks)
      .set(noun + "_per_s", times.median() > 0 ? count * 1e6 / times.median() : 0)
      .set("tasks", tasks)
      .set("stolen_batches", static_cast<double>(s.stolen - before.stolen) / repeats)
      .set("memory_bytes", static_cast<double>(s.memory))
      .check(wrong.empty(), wrong)
      .check(s.rejected == 0, fmt::format("{} tasks found no room", s.rejected));
  if (cpu_us) r.baseline("one CPU thread", noun + "_per_s", count * 1e6 / *cpu_us);
  return r;
}

}  // namespace

void program_options::add_to(CLI::App& program) {
  program.add_option("--device", device, "Where: cuda:N or host:N; the best present by default")
      ->type_name("D");
  program
      .add_option("--memory", memory,
                  "Device memory for tasks, such as 64M or 2G, never exceeded; 256M by default")
      ->type_name("BYTES");
  program
      .add_option("--repeat", repeat,
                  "How often to run it, 1 to 1000; 3 on GPUs, once on the host backend")
      ->type_name("N");
  program.add_flag("--check", check,
                   "Also run it on one CPU thread and compare; by default if that is short");
  program.add_flag("--no-check", no_check, "Do not")->excludes("--check");
  program.add_option("--json", json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");
}

runtime_options program_options::for_runtime() const {
  runtime_options o;
  if (memory)
    o.memory_limit = tool::parse_bytes("--memory", *memory, 1 << 20, std::uint64_t{1} << 40);
  return o;
}

int measure(job& j, const std::string& title, const program_options& o, const device& where,
            tool::json_file file) {
  unsigned repeats = where.is_cuda() ? 3 : 1;
  if (o.repeat) repeats = static_cast<unsigned>(tool::parse_number("--repeat", *o.repeat, 1, 1000));
  tool::report out(title, where, std::move(file));
  try {
    out.add(run(j, o, repeats));
    out.attach("result", j.outcome_json());
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

}  // namespace grosr::recursion
