#include "grosr/run/trace_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "grosr/simt/error.hpp"

namespace grosr::run {
namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

std::string microseconds(std::uint64_t ns) {
  const std::string fraction = number(ns % 1000);
  return number(ns / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction;
}

[[noreturn]] void refuse(const std::string& file) {
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
    path.replace_extension(program_name() + "." + number(static_cast<std::uint64_t>(::getpid())) +
                           "." + where + "." + number(n) + path.extension().string());
  }
  if (!std::ofstream(path)) refuse(path.string());
  return {path.string(), n};
}

std::string trace_file::quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      out += escaped;
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

trace_file::trace_file(const trace_part& part, const std::string& about, std::uint64_t origin)
    : path_(part.file), out_(part.file), origin_(origin) {
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
  add("M", track, 0, "thread_sort_index", "\"args\":{\"sort_index\":" + number(place) + "}");
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
  const std::string more = "\"cat\":" + quoted(name) + ",\"id\":" + number(id);
  add("s", from, begin, name, more);
  add("f", to, end, name, more + R"(,"bp":"e")");
}

void trace_file::close() {
  out_ << "\n]}\n";
  out_.close();
  if (!out_) refuse(path_);
}

}  // namespace grosr::run
