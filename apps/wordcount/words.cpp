#include "words.hpp"

#include <fmt/format.h>

#include <fstream>

#include "automaton.hpp"
#include "cli/errors.hpp"
#include "cli/text.hpp"

namespace grosr::wordcount {
namespace {

const std::vector<std::string> usual{
    "include", "define",    "struct",   "return",    "static",  "const",    "unsigned",
    "typedef", "template",  "typename", "namespace", "class",   "public",   "private",
    "virtual", "operator",  "import",   "self",      "lambda",  "yield",    "except",
    "raise",   "assert",    "global",   "switch",    "default", "break",    "continue",
    "while",   "sizeof",    "volatile", "extern",    "inline",  "register", "enum",
    "union",   "double",    "float",    "signed",    "short",   "kernel",   "device",
    "buffer",  "memory",    "thread",   "mutex",     "atomic",  "socket",   "version",
    "license", "copyright", "TODO",     "FIXME",     "error",   "warning",  "deprecated",
    "string",  "vector",    "iterator", "allocator", "pointer", "address",  "length",
    "offset"};

}  // namespace

std::vector<std::string> words_to_count(const std::optional<std::string>& file) {
  if (!file) return usual;
  const std::string name = "--words " + tool::one_line(*file);
  std::ifstream in(*file, std::ios::binary);
  if (!in) throw tool::usage_error(name + " cannot be read; name a file with one word a line");
  std::vector<std::string> words;
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    if (line.size() > longest_word)
      throw tool::usage_error(fmt::format("{} has a word of {} bytes; the longest may have {}",
                                          name, line.size(), longest_word));
    words.push_back(line);
    if (words.size() > most_words)
      throw tool::usage_error(
          fmt::format("{} has more than {} words; leave some out", name, most_words));
  }
  if (in.bad()) throw tool::usage_error(name + " cannot be read; name a file with one word a line");
  if (words.empty()) throw tool::usage_error(name + " has no word; write one a line");
  return words;
}

}  // namespace grosr::wordcount
