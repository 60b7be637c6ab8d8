#include "run/trace.hpp"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace grosr::run {
namespace {

constexpr std::size_t submits_kept = 65536;

}  // namespace

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

void write_event(trace_file& file, std::uint64_t thread, std::size_t worker, const trace_event& e,
                 std::span<const task_type> types) {
  if (e.kind == trace_event::steal) {
    file.mark(thread, e.begin, "steal", "\"from\":" + std::to_string(e.count));
  } else if (e.kind == trace_event::leave) {
    file.mark(thread, e.begin, "leaves the device");
  } else if (e.kind == trace_event::run) {
    const bool of_host = (e.place & trace_event::in_slot) != 0;
    file.span(thread, e.begin, e.end, types[e.type].name,
              "\"tasks\":" + std::to_string(e.count) +
                  (of_host ? ",\"slot\":" + std::to_string(e.place & ~trace_event::in_slot) : ""));
    file.counter(thread, e.end, "queue of worker " + std::to_string(worker),
                 "\"batches\":" + std::to_string(e.depth));
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

  trace_file file(part,
                  "\"device\":" + trace_file::quoted(d.name()) +
                      ",\"program\":" + trace_file::quoted(program_name()) +
                      ",\"runtime\":" + std::to_string(part.number),
                  origin);
  file.name_process(track.base, program_name() + ", " + d.name());
  for (const auto& [thread, nth] : track.submitters)
    file.name_track(track.of_submitter(thread), "host thread " + std::to_string(thread),
                    track.base);
  for (const auto& [w, sm] : multiprocessor)
    file.name_track(track.of_worker(w),
                    "SM " + std::to_string(sm) + ", worker " + std::to_string(w),
                    track.of_worker(w));
  for (const submit_event& s : submits)
    file.span(track.of_submitter(s.thread), s.begin, s.end,
              std::string("submit ") + what.types[s.type].name,
              "\"tasks\":" + std::to_string(s.count) + ",\"slot\":" + std::to_string(s.slot) +
                  ",\"priority\":" + std::to_string(s.level));
  std::uint64_t arrows = track.base;
  for_each_event(what, [&](std::size_t w, const trace_event& e) {
    write_event(file, track.of_worker(w), w, e, what.types);
    if (e.kind != trace_event::run) return;
    if (const places::arrival* from = found.at(e.place, e.begin))
      file.arrow(from->by, ++arrows, from->thread, from->at, track.of_worker(w), e.begin);
  });
  file.close();
}

}  // namespace grosr::run
