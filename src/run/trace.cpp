#include "run/trace.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>

namespace grosr::run {
namespace {

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string microseconds(std::uint64_t ns) {
  std::string fraction = std::to_string(ns % 1000);
  return std::to_string(ns / 1000) + "." + std::string(3 - fraction.size(), '0') + fraction;
}

[[noreturn]] void refuse(const std::string& file) {
  throw error(errc::invalid_option, "trace: cannot write \"" + file + "\" (" +
                                        std::strerror(errno) +
                                        "); check the folder and its rights");
}

}  // namespace

std::string trace_file_for(const std::string& file) {
  static std::mutex lock;
  static std::map<std::string, unsigned> used;
  std::lock_guard guard(lock);
  unsigned n = ++used[file];
  std::filesystem::path path = file;
  if (n > 1) path.replace_extension(std::to_string(n) + path.extension().string());
  if (!std::ofstream(path)) refuse(path.string());
  return path.string();
}

void write_perfetto(const std::string& file, const device& d, const std::vector<task_type>& types,
                    const std::vector<trace_event>& events,
                    const std::vector<std::uint32_t>& counts, std::uint32_t capacity) {
  std::ofstream out(file);
  std::uint64_t origin = ~std::uint64_t{0};
  auto each = [&](auto&& use) {
    for (std::size_t w = 0; w < counts.size(); ++w) {
      std::uint32_t n = std::min(counts[w], capacity);
      for (std::uint32_t k = 0; k < n; ++k)
        use(w, events[w * capacity + (counts[w] - n + k) % capacity]);
    }
  };
  each([&](std::size_t, const trace_event& e) { origin = std::min(origin, e.begin); });
  out << "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"device\":" << quoted(d.name())
      << "},\"traceEvents\":[\n";
  bool first = true;
  each([&](std::size_t w, const trace_event& e) {
    out << (first ? "" : ",\n");
    first = false;
    out << "{\"ph\":\"X\",\"pid\":" << e.sm << ",\"tid\":" << w
        << ",\"name\":" << quoted(types[e.type].name)
        << ",\"ts\":" << microseconds(e.begin - origin)
        << ",\"dur\":" << microseconds(e.end - e.begin) << ",\"args\":{\"tasks\":" << e.count
        << "}},\n{\"ph\":\"C\",\"pid\":" << e.sm << ",\"name\":\"queue of worker " << w
        << "\",\"ts\":" << microseconds(e.end - origin) << ",\"args\":{\"batches\":" << e.depth
        << "}}";
  });
  each([&](std::size_t w, const trace_event& e) {
    if (!first && w % warps_per_block == 0)
      out << ",\n{\"ph\":\"M\",\"pid\":" << e.sm
          << ",\"name\":\"process_name\",\"args\":{\"name\":\"SM " << e.sm << "\"}}";
  });
  out << "\n]}\n";
  out.close();
  if (!out) refuse(file);
}

}  // namespace grosr::run
