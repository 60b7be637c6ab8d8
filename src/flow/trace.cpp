#include "flow/trace.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace grosr::flow {
namespace {

using grosr::run::trace_file;

thread_local const looks_for* looks_here = nullptr;

std::string microseconds(std::int64_t ns) { return fmt::format("{:.3f}", double(ns) / 1e3); }

/// Spans of one name that overlap have a track each.
class lanes {
 public:
  /// `begin` does not fall from call to call.
  std::size_t lane_for(std::uint64_t begin, std::uint64_t end) {
    for (std::size_t i = 0; i < ends_.size(); ++i)
      if (ends_[i] <= begin) {
        ends_[i] = end;
        return i;
      }
    ends_.push_back(end);
    return ends_.size() - 1;
  }

 private:
  std::vector<std::uint64_t> ends_;
};

/// Numbers of tracks in the file, and their names.
class track_list {
 public:
  track_list(trace_file& file, std::uint64_t base) : file_(file), next_(base) {}

  std::uint64_t of(const std::string& name, std::size_t lane = 0) {
    const auto [found, is_new] = all_.try_emplace({name, lane}, next_ + 1);
    if (is_new) {
      ++next_;
      file_.name_track(next_, lane == 0 ? name : fmt::format("{} ({})", name, lane + 1), next_);
    }
    return found->second;
  }

 private:
  trace_file& file_;
  std::uint64_t next_;
  std::map<std::pair<std::string, std::size_t>, std::uint64_t> all_;
};

}  // namespace

// ---- recording ----

looks_for::looks_for(std::string w, const char* r)
    : what(std::move(w)), reason(r), before_(std::exchange(looks_here, this)) {}
looks_for::~looks_for() { looks_here = before_; }
const looks_for* looks_for::here() { return looks_here; }

trace_recorder::trace_recorder(const std::string& file, const std::vector<device>& devices)
    : part_(grosr::run::trace_part_for(file, devices.front())), devices_(devices) {}

unsigned trace_recorder::add_track(const std::string& name) {
  std::lock_guard lock(mutex_);
  tracks_.push_back(name);
  return static_cast<unsigned>(tracks_.size() - 1);
}

template <class E>
void trace_recorder::keep(std::deque<E>& all, E e) {
  if (all.size() == kept) all.pop_front();
  all.push_back(std::move(e));
}

void trace_recorder::add(run r) {
  std::lock_guard lock(mutex_);
  keep(runs_, std::move(r));
}
void trace_recorder::add(call c) {
  c.thread = ::gettid();
  std::lock_guard lock(mutex_);
  keep(calls_, std::move(c));
}
void trace_recorder::add(const block_copy& c, const std::string& what, const char* reason) {
  std::lock_guard lock(copies_mutex_);
  keep(copies_, {c, what, reason, c.begins, c.ends});
  copies_.back().is.begins = copies_.back().is.ends = {};
  // A time holds an event until it is known.
  constexpr std::size_t each = 256;
  if (++told_ % each != 0) return;
  for (std::size_t i = copies_.size() - std::min(copies_.size(), 2 * each); i < copies_.size();
       ++i) {
    copies_[i].begins.is_known();
    copies_[i].ends.is_known();
  }
}
void trace_recorder::mark(unsigned track, std::int64_t at, const std::string& text) {
  std::lock_guard lock(mutex_);
  keep(marks_, {track, at, text});
}

// ---- writing ----

void trace_recorder::write() {
  std::scoped_lock lock(mutex_, copies_mutex_);
  std::erase_if(runs_, [](run& r) { return !r.begins.is_known() || !r.ends.is_known(); });
  std::erase_if(copies_, [](copied& c) { return !c.begins.is_known() || !c.ends.is_known(); });
  const auto earlier = [](const auto& a, const auto& b) { return a.begins.ns() < b.begins.ns(); };
  std::stable_sort(runs_.begin(), runs_.end(), earlier);
  std::stable_sort(copies_.begin(), copies_.end(), earlier);

  std::uint64_t origin = ~std::uint64_t{0};
  for (const auto& r : runs_) origin = std::min(origin, r.begins.ns());
  for (const auto& c : copies_) origin = std::min(origin, c.begins.ns());
  for (const auto& c : calls_) origin = std::min(origin, static_cast<std::uint64_t>(c.begins));
  const std::uint64_t base = std::uint64_t{part_.number - 1} << 20;
  trace_file file(part_,
                  fmt::format("\"program\":{},\"executor\":{}",
                              trace_file::quoted(grosr::run::program_name()), part_.number),
                  origin);
  file.name_process(base, grosr::run::program_name() + ", dataflow");
  track_list tracks(file, base);

  /// Where an arrow from a block's maker begins: just before the end of its span.
  struct place {
    std::uint64_t track, at;
  };
  std::map<std::uint64_t, place> makers;
  std::uint64_t arrows = base;
  const auto arrow = [&](std::uint64_t made_by, std::uint64_t to, std::uint64_t at) {
    if (const auto from = makers.find(made_by); from != makers.end())
      file.arrow("block", ++arrows, from->second.track, from->second.at, to, at);
  };
  for (const call& c : calls_) {
    const auto begins = static_cast<std::uint64_t>(c.begins);
    const auto ends = static_cast<std::uint64_t>(c.ends);
    const std::uint64_t track = tracks.of(fmt::format("program, thread {}", c.thread));
    file.span(track, begins, ends, c.what, "");
    if (c.number != 0) makers[c.number] = {track, std::max(begins, ends - 1)};
  }
  for (const std::string& name : tracks_) tracks.of(name);
  std::vector<lanes> of_nodes(tracks_.size());
  std::vector<std::uint64_t> track_of;  // of each run
  for (const run& r : runs_) {
    const std::uint64_t begins = r.begins.ns(), ends = std::max(begins, r.ends.ns());
    track_of.push_back(tracks.of(tracks_[r.track], of_nodes[r.track].lane_for(begins, ends)));
    std::string arguments = fmt::format(
        R"("run":{},"unit":{},"why":{},"queued_us":{},"started_us":{})", r.run,
        trace_file::quoted(r.unit), trace_file::quoted(r.reason), microseconds(r.began - r.queued),
        microseconds(static_cast<std::int64_t>(begins) - r.began));
    if (!r.failed.empty()) arguments += ",\"failed\":" + trace_file::quoted(r.failed);
    file.span(track_of.back(), begins, ends, r.failed.empty() ? "run" : "failed", arguments);
    makers[r.number] = {track_of.back(), std::max(begins, ends - std::min<std::uint64_t>(ends, 1))};
  }
  for (std::size_t i = 0; i < runs_.size(); ++i)
    for (const std::uint64_t m : runs_[i].made_by) arrow(m, track_of[i], runs_[i].begins.ns());
  for (const call& c : calls_)
    if (c.made_by != 0)
      arrow(c.made_by, tracks.of(fmt::format("program, thread {}", c.thread)),
            static_cast<std::uint64_t>(c.ends));
  std::map<std::string, lanes> of_copies;
  for (const copied& c : copies_) {
    const bool comes_back = c.is.to == host_space;
    const std::string name = fmt::format("copies {} {}", comes_back ? "from" : "to",
                                         devices_[(comes_back ? c.is.from : c.is.to) - 1].name());
    const std::uint64_t begins = c.begins.ns(), ends = std::max(begins, c.ends.ns());
    file.span(tracks.of(name, of_copies[name].lane_for(begins, ends)), begins, ends, c.what,
              fmt::format("\"bytes\":{},\"why\":{}", c.is.bytes, trace_file::quoted(c.reason)));
  }
  for (const marked& m : marks_)
    file.mark(tracks.of(tracks_[m.track]), static_cast<std::uint64_t>(m.at), m.text);
  file.close();
}

}  // namespace grosr::flow
