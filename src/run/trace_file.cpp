#include "grosr/run/trace_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <locale>
#include <map>
#include <mutex>

#include "grosr/simt/error.hpp"

namespace grosr::run {
namespace {

std::string microseconds(std::uint64_t ns) {
  const std::string fraction = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction;
}

/// Bytes of the character that begins at `i`; 0: none that is well-formed (Unicode, table 3-7).
std::size_t utf8_length(const std::string& s, std::size_t i) {
  const auto at = [&](std::size_t k) {
    return k < s.size() ? static_cast<unsigned char>(s[k]) : 0u;
  };
  const unsigned first = at(i);
  if (first < 0x80) return 1;
  const std::size_t n = first >= 0xc2 && first <= 0xdf   ? 2
                        : first >= 0xe0 && first <= 0xef ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (std::size_t k = 1; k < n; ++k)
    if (at(i + k) < (k == 1 ? low : 0x80) || at(i + k) > (k == 1 ? high : 0xbf)) return 0;
  return n;
}

[[noreturn]] void cannot_write(const std::string& file) {
  throw error(errc::invalid_option, "trace: cannot write \"" + file + "\" (" +
                                        std::strerror(errno) +
                                        "); check the folder and its rights");
}

}  // namespace

std::string program_name() {
  std::string name = program_invocation_short_name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  return name;
}

trace_part trace_part_for(const std::string& file, const device& d) {
  static std::mutex lock;
  static std::map<std::string, unsigned> used;
  std::lock_guard guard(lock);
  const unsigned n = ++used[file];
  std::filesystem::path path = file;
  if (n > 1) {
    std::string where = d.name();
    where.erase(std::remove(where.begin(), where.end(), ':'), where.end());
    path.replace_extension(program_name() + "." +
                           std::to_string(static_cast<std::uint64_t>(::getpid())) + "." + where +
                           "." + std::to_string(n) + path.extension().string());
  }
  if (!std::ofstream(path)) cannot_write(path.string());
  return {path.string(), n};
}

std::string trace_file::quoted(const std::string& s) {
  std::string out = "\"";
  for (std::size_t i = 0; i < s.size();) {
    const std::size_t n = utf8_length(s, i);
    const char c = s[i];
    if (n == 0) {
      out += "\\ufffd";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out.append(s, i, n);
    }
    i += std::max<std::size_t>(n, 1);
  }
  return out + "\"";
}

trace_file::trace_file(const trace_part& part, const std::string& about, std::uint64_t origin)
    : path_(part.file), out_(part.file), origin_(origin) {
  out_.imbue(std::locale::classic());
  out_ << R"({"displayTimeUnit":"ns","otherData":{)" << about << "},\"traceEvents\":[\n";
}

void trace_file::add(const char* phase, std::uint64_t track, std::uint64_t at,
                     const std::string& name, const std::string& more) {
  out_ << (first_ ? "" : ",\n") << R"({"ph":")" << phase << R"(","pid":)" << ::getpid()
       << ",\"tid\":" << track << ",\"ts\":" << microseconds(at < origin_ ? 0 : at - origin_)
       << ",\"name\":" << quoted(name) << (more.empty() ? "" : ",") << more << "}";
  first_ = false;
}

void trace_file::name_process(std::uint64_t track, const std::string& name) {
  add("M", track, 0, "process_name", "\"args\":{\"name\":" + quoted(name) + "}");
}

void trace_file::name_track(std::uint64_t track, const std::string& name, std::uint64_t place) {
  add("M", track, 0, "thread_name", "\"args\":{\"name\":" + quoted(name) + "}");
  add("M", track, 0, "thread_sort_index",
      "\"args\":{\"sort_index\":" + std::to_string(place) + "}");
}

void trace_file::span(std::uint64_t track, std::uint64_t begin, std::uint64_t end,
                      const std::string& name, const std::string& arguments) {
  add("X", track, begin, name,
      "\"dur\":" + microseconds(end < begin ? 0 : end - begin) + ",\"args\":{" + arguments + "}");
}

void trace_file::mark(std::uint64_t track, std::uint64_t at, const std::string& name,
                      const std::string& arguments) {
  add("i", track, at, name,
      R"("s":"t")" + (arguments.empty() ? "" : ",\"args\":{" + arguments + "}"));
}

void trace_file::counter(std::uint64_t track, std::uint64_t at, const std::string& name,
                         const std::string& arguments) {
  add("C", track, at, name, "\"args\":{" + arguments + "}");
}

void trace_file::arrow(const std::string& name, std::uint64_t id, std::uint64_t from,
                       std::uint64_t begin, std::uint64_t to, std::uint64_t end) {
  const std::string more = "\"cat\":" + quoted(name) + ",\"id\":" + std::to_string(id);
  add("s", from, begin, name, more);
  add("f", to, end, name, more + R"(,"bp":"e")");
}

void trace_file::close() {
  out_ << "\n]}\n";
  out_.close();
  if (!out_) cannot_write(path_);
}

}  // namespace grosr::run
