// gpu-grep: prints the lines of files that match, found by the GPU, which reads the files itself.
#include <fmt/format.h>
#include <fnmatch.h>

#include <cstdio>
#include <cstring>

#include "cli/errors.hpp"
#include "cli/literal_arguments.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "search.hpp"

namespace {

using namespace grosr;
using namespace grosr::grep;

constexpr std::size_t files_at_once = 32 * 1024;

enum exit_code : int { exit_found = 0, exit_none = 1, exit_trouble = 2 };

struct options {
  std::vector<std::string> patterns, include, words;
  std::optional<std::string> device;
  bool fixed = false, extended = false, ignore_case = false, whole_words = false;
  bool numbers = false, count = false, names_only = false, recursive = false;
  bool with_names = false, without_names = false;
};

class printer {
 public:
  printer(const options& o, const tool::file_list& list) : o_(o), list_(list) {}

  void print(std::size_t file, const file_result& r) {
    const std::string name = list_.shown(file);
    if (r.error != 0) complain(name, r.error);
    found_ |= r.matches != 0;
    const tool::source_tree& tree = list_.trees[list_.files[file].tree];
    const bool named = !o_.without_names && (o_.with_names || many_ || !tree.is_file);
    if (o_.names_only) {
      if (r.matches != 0) write(name + "\n");
    } else if (o_.count) {
      if (r.error == 0) write((named ? name + ":" : "") + std::to_string(r.matches) + "\n");
    } else if (r.binary) {
      if (r.matches == 0) return;
      std::fflush(stdout);
      tool::say(fmt::format("gpu-grep: {}: binary file matches\n", tool::one_line(name)));
    } else {
      for (const found_line& line : r.lines) {
        std::string text = named ? name + ":" : "";
        if (o_.numbers) text += std::to_string(line.number) + ":";
        write(text += line.text + "\n");
      }
    }
  }

  void complain(const std::string& path, int error) {
    std::fflush(stdout);
    tool::say(fmt::format("gpu-grep: {}: {}\n", tool::one_line(path), std::strerror(error)));
    trouble_ = true;
  }

  void several_operands(bool many) { many_ = many; }
  int code() const { return trouble_ ? exit_trouble : found_ ? exit_found : exit_none; }

 private:
  static void write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

  const options& o_;
  const tool::file_list& list_;
  bool many_ = false, found_ = false, trouble_ = false;
};

int run(options& o) {
  if (o.patterns.empty()) {
    if (o.words.empty()) throw tool::usage_error("no pattern was given; gpu-grep PATTERN PATH...");
    o.patterns.push_back(o.words.front());
    o.words.erase(o.words.begin());
  }
  if (o.fixed && o.extended) throw tool::usage_error("-E and -F exclude each other; give one");
  const expression_ptr e = read_patterns(o.patterns, {o.fixed, o.ignore_case, o.whole_words});
  const line_automaton lines(*e);
  const device where = tool::pick_device(o.device);
  const auto included = [&](const std::string& name) {
    for (const std::string& glob : o.include)
      if (::fnmatch(glob.c_str(), name.c_str(), 0) == 0) return true;
    return o.include.empty();
  };
  const bool here = o.words.empty();
  const tool::file_list list =
      tool::list_files(here ? std::vector<std::string>{""} : o.words, included);
  printer out(o, list);
  out.several_operands(o.words.size() > 1);
  for (const tool::unreadable& f : list.failures) out.complain(f.path, f.error);
  if (list.files.empty()) return out.code();
  searcher s(list, lines, where);
  const wanted what = o.count || o.names_only ? wanted::counts : wanted::lines;
  for (std::size_t first = 0; first < list.files.size(); first += files_at_once) {
    std::vector<std::uint32_t> now;
    for (std::size_t i = first; i < std::min(first + files_at_once, list.files.size()); ++i)
      now.push_back(static_cast<std::uint32_t>(i));
    const auto results = s.search(now, what, what == wanted::lines && o.numbers);
    for (std::size_t i = 0; i < now.size(); ++i) out.print(now[i], results[i]);
    if (std::ferror(stdout) != 0) break;  // nobody reads on
  }
  return out.code();
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program{
      "Prints the lines that match a pattern, of files and of all files in folders. The GPU opens, "
      "reads and searches.",
      "gpu-grep"};
  options o;
  program.set_help_flag("--help", "Print this");
  program
      .add_option("PATTERN PATH...", o.words,
                  "What to search for, and where; without a path here, without a pattern with -e")
      ->type_name("");
  program.add_option("-e", o.patterns, "A pattern; may be given several times")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  program.add_flag("-F", o.fixed, "Patterns are strings");
  program.add_flag("-E", o.extended, "Patterns are extended regular expressions, as by default");
  program.add_flag("-i", o.ignore_case, "Letters match in both cases (ASCII)");
  program.add_flag("-w", o.whole_words, "What matches is whole words");
  program.add_flag("-n", o.numbers, "With the number of each line");
  program.add_flag("-c", o.count, "Only how many lines match, for each file");
  program.add_flag("-l", o.names_only, "Only the names of files with lines that match");
  program.add_flag("-H", o.with_names, "With the name of the file, also when there is one file");
  program.add_flag("-h", o.without_names, "Without names of files");
  program.add_flag("-r", o.recursive, "Folders with all below them, as always");
  program.add_option("--include", o.include, "Only files whose names match GLOB")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  program.add_option("--device", o.device, "cuda:N or host:N; the best present by default")
      ->type_name("D");
  program.footer(
      "Examples:\n"
      "  gpu-grep -n TODO src\n"
      "  gpu-grep -F -e 'a.b' -e 'c[0]' --include '*.c' .\n"
      "  gpu-grep -l -w '(get|set)_[a-z]+' /usr/include\n\n"
      "Exit code: 0 if a line matched; 1 if none did; 2 if something went wrong, also when lines "
      "matched; 130 on Ctrl-C.");
  tool::literal_arguments arguments(argc, argv);
  const auto work = [&] {
    for (auto* given : {&o.words, &o.patterns, &o.include})
      tool::literal_arguments::as_given(*given);
    return run(o);
  };
  return tool::run_program(program, arguments.count(), arguments.values(), work, exit_trouble);
}
