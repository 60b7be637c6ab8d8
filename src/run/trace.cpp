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

constexpr std::size_t submits_kept = 65536;

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

void submit_log::add(submit_event e) {
  e.thread = ::gettid();
  std::lock_guard guard(lock_);
  if (events_.size() == submits_kept) events_.pop_front();
  events_.push_back(e);
}

std::vector<submit_event> submit_log::all() const {
  std::lock_guard guard(lock_);
  return {events_.begin(), events_.end()};
}

namespace {

std::string number(std::uint64_t n) { return std::to_string(n); }

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
  void span(std::uint64_t thread, std::uint64_t begin, std::uint64_t end, const std::string& name,
            const std::string& arguments) {
    add("X", thread, begin, name,
        "\"dur\":" + microseconds(end - begin) + ",\"args\":{" + arguments + "}");
  }
  void describe(const char* what, std::uint64_t thread, const std::string& arguments) {
    add("M", thread, 0, what, "\"args\":{" + arguments + "}");
  }
  void name_thread(std::uint64_t thread, const std::string& name, std::uint64_t place) {
    describe("thread_name", thread, "\"name\":" + quoted(name));
    describe("thread_sort_index", thread, "\"sort_index\":" + number(place));
  }
  /// An arrow, both of whose ends lie within what their threads did then.
  void arrow(const char* name, std::uint64_t id, std::uint64_t from, std::uint64_t begin,
             std::uint64_t to, std::uint64_t end) {
    const std::string more = std::string("\"cat\":\"") + name + "\",\"id\":" + number(id);
    add("s", from, begin, name, more);
    add("f", to, end, name, more + ",\"bp\":\"e\"");
  }

 private:
  std::ofstream& out_;
  std::uint64_t origin_;
  bool first_ = true;
};

/// Since when something is to be found at a place, and whose thread put it there.
class places {
 public:
  struct arrival {
    std::uint64_t at, thread;
    const char* by;
  };
  void add(std::uint32_t place, const arrival& a) { all_[place].push_back(a); }
  void sort() {
    for (auto& [place, list] : all_)
      std::sort(list.begin(), list.end(),
                [](const arrival& a, const arrival& b) { return a.at < b.at; });
  }
  /// What lay there at that time; null where that is not among what was kept.
  const arrival* at(std::uint32_t place, std::uint64_t time) const {
    const auto list = all_.find(place);
    if (list == all_.end()) return nullptr;
    const auto after = std::upper_bound(list->second.begin(), list->second.end(), time,
                                        [](std::uint64_t t, const arrival& a) { return t < a.at; });
    return after == list->second.begin() ? nullptr : &*std::prev(after);
  }

 private:
  std::map<std::uint32_t, std::vector<arrival>> all_;
};

// The number of an event's thread in the file. Those of later runtimes are others, where files are
// read together.
struct tracks {
  explicit tracks(const trace_part& part) : base(std::uint64_t{part.number - 1} << 20) {}
  std::uint64_t of_worker(std::size_t w) const { return base + 1 + w; }
  std::uint64_t of_submitter(std::int32_t thread) {
    return base + (1 << 19) + submitters.emplace(thread, submitters.size()).first->second;
  }
  const std::uint64_t base;
  std::map<std::int32_t, std::uint64_t> submitters;  // Linux's numbers, and which one each is
};

template <class Use>
void for_each_event(const trace_record& what, Use&& use) {
  for (std::size_t w = 0; w < what.counts.size(); ++w) {
    const std::uint32_t n = std::min(what.counts[w], what.capacity);
    for (std::uint32_t k = 0; k < n; ++k)
      use(w, what.events[w * what.capacity + (what.counts[w] - n + k) % what.capacity]);
  }
}

void write_event(event_list& list, std::uint64_t thread, std::size_t worker, const trace_event& e,
                 std::span<const task_type> types) {
  if (e.kind == trace_event::steal) {
    list.add("i", thread, e.begin, "steal",
             "\"s\":\"t\",\"args\":{\"from\":" + number(e.count) + "}");
  } else if (e.kind == trace_event::leave) {
    list.add("i", thread, e.begin, "leaves the device", "\"s\":\"t\"");
  } else if (e.kind == trace_event::run) {
    const bool of_host = (e.place & trace_event::in_slot) != 0;
    list.span(thread, e.begin, e.end, types[e.type].name,
              "\"tasks\":" + number(e.count) +
                  (of_host ? ",\"slot\":" + number(e.place & ~trace_event::in_slot) : ""));
    list.add("C", thread, e.end, "queue of worker " + number(worker),
             "\"args\":{\"batches\":" + number(e.depth) + "}");
  }
}

/// The same with the device's times; none where its clock is not known.
std::vector<submit_event> on_device(std::vector<submit_event> submits, const device_clock& clock) {
  for (submit_event& s : submits)
    for (std::uint64_t* time : {&s.begin, &s.sent, &s.end}) {
      const auto known = clock.at(*time);
      if (!known) return {};
      *time = *known;
    }
  return submits;
}

}  // namespace

void write_perfetto(const trace_part& part, const device& d, const trace_record& what,
                    const device_clock& clock) {
  const std::vector<submit_event> submits = on_device(what.submits, clock);
  tracks track(part);
  std::uint64_t origin = ~std::uint64_t{0};
  places found;
  std::map<std::size_t, std::uint32_t> multiprocessor;
  for_each_event(what, [&](std::size_t w, const trace_event& e) {
    origin = std::min(origin, e.begin);
    multiprocessor[w] = e.sm;
    if (e.kind == trace_event::ready) found.add(e.place, {e.begin, track.of_worker(w), "spawn"});
  });
  for (const submit_event& s : submits) {
    origin = std::min(origin, s.begin);
    found.add(s.slot | trace_event::in_slot, {s.sent, track.of_submitter(s.thread), "submit"});
  }
  found.sort();

  std::ofstream out(part.file);
  out << "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"device\":" << quoted(d.name())
      << ",\"program\":" << quoted(program_name()) << ",\"runtime\":" << part.number
      << "},\"traceEvents\":[\n";
  event_list list(out, origin);
  list.describe("process_name", track.base, "\"name\":" + quoted(program_name() + ", " + d.name()));
  for (const auto& [thread, nth] : track.submitters)
    list.name_thread(track.of_submitter(thread), "host thread " + std::to_string(thread),
                     track.base);
  for (const auto& [w, sm] : multiprocessor)
    list.name_thread(track.of_worker(w), "SM " + number(sm) + ", worker " + number(w),
                     track.of_worker(w));
  for (const submit_event& s : submits)
    list.span(track.of_submitter(s.thread), s.begin, s.end,
              std::string("submit ") + what.types[s.type].name,
              "\"tasks\":" + number(s.count) + ",\"slot\":" + number(s.slot) +
                  ",\"priority\":" + number(s.level));
  std::uint64_t arrows = track.base;
  for_each_event(what, [&](std::size_t w, const trace_event& e) {
    write_event(list, track.of_worker(w), w, e, what.types);
    if (e.kind != trace_event::run) return;
    if (const places::arrival* from = found.at(e.place, e.begin))
      list.arrow(from->by, ++arrows, from->thread, from->at, track.of_worker(w), e.begin);
  });
  out << "\n]}\n";
  out.close();
  if (!out) refuse(part.file);
}

}  // namespace grosr::run
