#include "run/trace.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
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

std::string program_name() {
  std::string name = program_invocation_short_name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') c = '_';
  return name;
}

}  // namespace

trace_part trace_part_for(const std::string& file, const device& d) {
  static std::mutex lock;
  static std::map<std::string, unsigned> used;
  std::lock_guard guard(lock);
  const unsigned n = ++used[file];
  std::filesystem::path path = file;
  if (n > 1) {
    std::string where = d.name();
    where.erase(std::remove(where.begin(), where.end(), ':'), where.end());
    path.replace_extension(program_name() + "." + std::to_string(::getpid()) + "." + where + "." +
                           std::to_string(n) + path.extension().string());
  }
  if (!std::ofstream(path)) refuse(path.string());
  return {path.string(), n};
}

namespace {

/// Writes one event after the other.
class event_list {
 public:
  event_list(std::ofstream& out, std::uint64_t origin) : out_(out), origin_(origin) {}

  /// `phase`, and what every event has; `more` are further members.
  void add(const char* phase, std::uint64_t thread, std::uint64_t at, const std::string& name,
           const std::string& more) {
    out_ << (first_ ? "" : ",\n") << "{\"ph\":\"" << phase << "\",\"pid\":" << ::getpid()
         << ",\"tid\":" << thread << ",\"ts\":" << microseconds(at < origin_ ? 0 : at - origin_)
         << ",\"name\":" << quoted(name) << (more.empty() ? "" : ",") << more << "}";
    first_ = false;
  }
  void describe(const char* what, std::uint64_t thread, const std::string& arguments) {
    add("M", thread, 0, what, "\"args\":{" + arguments + "}");
  }
  /// An arrow, which begins within what its thread did then.
  void arrow(const char* phase, std::uint64_t thread, std::uint64_t at, std::uint64_t number) {
    add(phase, thread, at, "spawn",
        "\"cat\":\"spawn\",\"id\":" + std::to_string(number) +
            (*phase == 'f' ? ",\"bp\":\"e\"" : ""));
  }

 private:
  std::ofstream& out_;
  std::uint64_t origin_;
  bool first_ = true;
};

}  // namespace

void write_perfetto(const trace_part& part, const device& d, const std::vector<task_type>& types,
                    const std::vector<trace_event>& events,
                    const std::vector<std::uint32_t>& counts, std::uint32_t capacity) {
  std::ofstream out(part.file);
  std::uint64_t origin = ~std::uint64_t{0};
  auto each = [&](auto&& use) {
    for (std::size_t w = 0; w < counts.size(); ++w) {
      std::uint32_t n = std::min(counts[w], capacity);
      for (std::uint32_t k = 0; k < n; ++k)
        use(w, events[w * capacity + (counts[w] - n + k) % capacity]);
    }
  };
  // When a batch became ready, and by whom; and on which multiprocessor a worker is.
  struct origin_of {
    std::uint64_t at;
    std::size_t worker;
  };
  std::map<std::uint32_t, std::vector<origin_of>> ready;
  std::map<std::size_t, std::uint32_t> where;
  each([&](std::size_t w, const trace_event& e) {
    origin = std::min(origin, e.begin);
    where[w] = e.sm;
    if (e.kind == trace_event::ready) ready[e.place].push_back({e.begin, w});
  });
  for (auto& [place, all] : ready)
    std::sort(all.begin(), all.end(),
              [](const origin_of& a, const origin_of& b) { return a.at < b.at; });

  // Threads of later runtimes have numbers of their own, where parts are read together.
  const std::uint64_t base = std::uint64_t{part.number - 1} << 20;
  const auto thread = [&](std::size_t w) { return base + w + 1; };
  out << "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"device\":" << quoted(d.name())
      << ",\"program\":" << quoted(program_name()) << ",\"runtime\":" << part.number
      << "},\"traceEvents\":[\n";
  event_list list(out, origin);
  list.describe("process_name", base, "\"name\":" + quoted(program_name() + ", " + d.name()));
  for (const auto& [w, sm] : where) {
    list.describe(
        "thread_name", thread(w),
        "\"name\":" + quoted("SM " + std::to_string(sm) + ", worker " + std::to_string(w)));
    list.describe("thread_sort_index", thread(w), "\"sort_index\":" + std::to_string(thread(w)));
  }
  std::uint64_t arrows = 0;
  const auto number = [](std::uint32_t n) { return std::to_string(n); };
  each([&](std::size_t w, const trace_event& e) {
    if (e.kind == trace_event::steal) {
      list.add("i", thread(w), e.begin, "steal",
               "\"s\":\"t\",\"args\":{\"from\":" + number(e.count) + "}");
    } else if (e.kind == trace_event::leave) {
      list.add("i", thread(w), e.begin, "leaves the device", "\"s\":\"t\"");
    } else if (e.kind == trace_event::run) {
      const bool of_host = (e.place & trace_event::in_slot) != 0;
      list.add("X", thread(w), e.begin, types[e.type].name,
               "\"dur\":" + microseconds(e.end - e.begin) +
                   ",\"args\":{\"tasks\":" + number(e.count) +
                   (of_host ? ",\"slot\":" + number(e.place & ~trace_event::in_slot) : "") + "}");
      list.add("C", thread(w), e.end, "queue of worker " + std::to_string(w),
               "\"args\":{\"batches\":" + number(e.depth) + "}");
      const auto from = ready.find(e.place);
      if (from == ready.end()) return;
      auto after = std::upper_bound(from->second.begin(), from->second.end(), e.begin,
                                    [](std::uint64_t at, const origin_of& o) { return at < o.at; });
      if (after == from->second.begin()) return;  // it became ready before what is kept
      const origin_of& o = *std::prev(after);
      ++arrows;
      list.arrow("s", thread(o.worker), o.at, base + arrows);
      list.arrow("f", thread(w), e.begin, base + arrows);
    }
  });
  out << "\n]}\n";
  out.close();
  if (!out) refuse(part.file);
}

}  // namespace grosr::run
