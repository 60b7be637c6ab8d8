// wordcount: counts words in source trees, read by the GPU itself.
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/literal_arguments.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "compare.hpp"
#include "words.hpp"

namespace {

using namespace grosr;
using namespace grosr::wordcount;

struct options {
  std::optional<std::string> words, device, json, repeats;
  std::string by = "gpu", threads = "0", cpu_threads = "0";
  bool compare = false;
  std::vector<std::string> trees;
};

unsigned cpus() {
  // Those that this program may run on, as OpenMP counts them.
  cpu_set_t may;
  CPU_ZERO(&may);
  if (::sched_getaffinity(0, sizeof may, &may) == 0) return static_cast<unsigned>(CPU_COUNT(&may));
  return std::max(1u, std::thread::hardware_concurrency());
}

bool complain(const std::vector<tool::unreadable>& failures) {
  for (const tool::unreadable& f : failures)
    tool::say(fmt::format("wordcount: {}: {}; it is left out\n", tool::one_line(f.path),
                          std::strerror(f.error)));
  return !failures.empty();
}

int run_compare(const options& o, const question& q, unsigned threads, unsigned cpu_threads) {
  const unsigned repeats =
      o.repeats ? static_cast<unsigned>(tool::parse_number("--repeats", *o.repeats, 1, 10'000)) : 0;
  const device where = tool::pick_device(o.device);
  tool::report out("wordcount", where, tool::json_file(o.json));
  tool::session s{where, out, {}, repeats};
  try {
    compare(s, q, threads, cpu_threads);
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

int run(const options& o) {
  const auto number = [](const char* what, const std::string& text) {
    return static_cast<unsigned>(tool::parse_number(what, text, 0, 256));
  };
  const unsigned threads = number("--threads", o.threads);
  const unsigned given_cpus = number("--cpu-threads", o.cpu_threads);
  const unsigned cpu_threads = given_cpus != 0 ? given_cpus : cpus();
  if (o.by != "gpu" && o.by != "openmp" && o.by != "vectorscan")
    throw tool::usage_error(
        fmt::format("--by is \"{}\"; use gpu, openmp or vectorscan", tool::one_line(o.by)));
  if (!o.compare && (o.json || o.repeats))
    throw tool::usage_error(fmt::format("--{} needs --compare", o.json ? "json" : "repeats"));
  question q{words_to_count(o.words), tool::list_files(o.trees)};
  bool bad = complain(q.list.failures);
  if (bad && q.list.trees.empty()) return tool::exit_usage;
  if (o.compare) {
    const int code = run_compare(o, q, threads, cpu_threads);
    return code == tool::exit_ok && bad ? int{tool::exit_failed} : code;
  }
  const unsigned on_cpu = threads != 0 ? threads : cpu_threads;
  const std::unique_ptr<counter> by =
      o.by == "openmp"       ? count_by_openmp(q, on_cpu)
      : o.by == "vectorscan" ? count_by_vectorscan(q, on_cpu)
                             : count_on_device(q, tool::pick_device(o.device), threads);
  const answer a = by->count();
  bad |= complain(a.failures);
  for (std::size_t i = 0; i < q.words.size(); ++i)
    fmt::print("{:>14} {}\n", a.counts[i], q.words[i]);
  std::fflush(stdout);
  if (isatty(STDERR_FILENO))
    tool::say(fmt::format("{} files, {}, {} by {}\n", tool::grouped(q.list.files.size()),
                          tool::only_unit("bytes", static_cast<double>(a.bytes)),
                          tool::only_unit("ms", a.us / 1e3), by->name()));
  return bad ? tool::exit_failed : tool::exit_ok;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program{
      "Counts how often words occur in the files of source trees, also within other words. "
      "The GPU opens, reads and counts.",
      "wordcount"};
  options o;
  program.add_option("TREE", o.trees, "Folders and files")->required()->type_name("");
  program.add_option("--words", o.words, "The words, one a line, at most 64; else 64 usual ones")
      ->type_name("FILE");
  program.add_option("--device", o.device, "cuda:N or host:N; the best present by default")
      ->type_name("D");
  program.add_option("--by", o.by, "gpu, openmp or vectorscan; gpu by default")->type_name("WHO");
  program.add_option("--threads", o.threads, "Service threads of the GPU, or threads of the CPU")
      ->type_name("N");
  program.add_flag("--compare", o.compare, "All of them, checked against each other and timed");
  program.add_option("--cpu-threads", o.cpu_threads, "With --compare: threads of the CPU's ways")
      ->type_name("N");
  program.add_option("--json", o.json, "With --compare: also write the results to FILE")
      ->type_name("FILE");
  program.add_option("--repeats", o.repeats, "With --compare: how often to measure")
      ->type_name("N");
  program.footer(
      "Examples:\n"
      "  wordcount /usr/include\n"
      "  wordcount --compare --json wordcount.json /usr/src/linux\n\n"
      "Exit code: 0; 1 if a file could not be read; 2 if nothing could be started; "
      "130 on Ctrl-C.");
  tool::literal_arguments arguments(argc, argv);
  return tool::run_program(program, arguments.count(), arguments.values(), [&] {
    tool::literal_arguments::as_given(o.trees);
    return run(o);
  });
}
