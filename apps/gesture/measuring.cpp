#include "measuring.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "alone.hpp"
#include "cli/progress.hpp"
#include "measure/machine.hpp"
#include "plainly.hpp"

namespace grosr::gesture {
namespace {

using tool::row;

struct measured {
  const named_way* how = nullptr;
  double frames_per_s = 0, p50_us = 0;
};

/// Summaries of all frames of the recording, by plain loops.
std::vector<std::vector<cell>> summaries_of(const setup& s) {
  tool::progress shown("computing what is right, by plain loops", s.frames.frames);
  std::vector<std::vector<cell>> all;
  for (std::uint32_t i = 0; i < s.frames.frames; ++i) {
    all.push_back(
        plainly::summary(plainly::filtered_cloud(s.shape(), s.radius, s.frames.frame(i))));
    shown.next();
  }
  return all;
}

/// Events of the frames that were not lost. Empty: they are right.
std::string first_wrong(const setup& s, const std::vector<std::vector<cell>>& summaries,
                        const delivery& got) {
  hands expected(s.shape());
  std::size_t next = 0;
  for (const std::uint64_t f : got.frames()) {
    const std::vector<event>& all = expected.see(f, summaries[f % s.frames.frames].data());
    for (const event& e : all) {
      if (next == got.events().size()) return text_of(e) + ": this is missing";
      if (got.events()[next] != e)
        return fmt::format("{}; it should be: {}", text_of(got.events()[next]), text_of(e));
      ++next;
    }
  }
  if (next != got.events().size()) return text_of(got.events()[next]) + ": this is too much";
  return "";
}

std::size_t free_memory(const device& d) { return d.is_cuda() ? d.properties().memory_free : 0; }
double grown(std::uint64_t from, std::uint64_t to) {
  return to > from ? static_cast<double>(to - from) : 0;
}

std::string text_of(const course& c) {
  return c.fps == 0 ? "unconstrained" : fmt::format("real time at {} fps", c.fps);
}

measured add_row(row& r, const setup& s, const named_way& how, const course& c,
                 const std::vector<std::vector<cell>>& summaries, const frame_alone& alone,
                 gpu_meter* gpu) {
  const std::uint64_t free_before = free_memory(s.where), resident_before = tool::resident_bytes();
  delivery got(c, s.shape());
  run_usage u;
  double device_bytes = 0, resident = 0;
  std::optional<double> gpu_percent;
  {
    tool::progress shown(fmt::format("{}, {}", how.name, text_of(c)));
    const auto way = how.make(s);
    if (gpu != nullptr) static_cast<void>(gpu->percent());
    u = way->run(c, got);
    for (const std::string& note : way->notes()) r.note(note);
    if (gpu != nullptr) gpu_percent = gpu->percent();
    device_bytes = grown(free_memory(s.where), free_before);
    resident = grown(resident_before + got.bytes(), tool::resident_bytes()) +
               static_cast<double>(u.other_bytes);
  }
  const tool::samples us(got.latencies_us());
  const double seconds = got.seconds();
  const auto frames = static_cast<double>(us.count());
  const double rate = got.frames_per_s();
  const auto percent = [&](double of_s) { return seconds > 0 ? 100 * of_s / seconds : 0; };
  r.set("frames_per_s", rate)
      .set("input_gb_per_s", rate * static_cast<double>(s.shape().bytes()) * 1e-9)
      .latency(us)
      .set("p999_us", us.quantile(0.999));
  if (alone.us() > 0)
    r.set("alone_copies_us", alone.copies_us)
        .set("alone_kernels_us", alone.kernels_us)
        .set("p99_over_alone_x", us.quantile(0.99) / alone.us());
  r.set("user_percent", percent(u.ended.user_s - u.began.user_s))
      .set("system_percent", percent(u.ended.system_s - u.began.system_s));
  if (gpu_percent) r.set("gpu_percent", *gpu_percent);
  if (s.where.is_cuda()) {
    if (how.make != make_host) r.set("computed_gpu_percent", percent(alone.us() * 1e-6 * frames));
    r.set("gpu_memory_bytes", device_bytes);
  }
  r.set("threads", u.threads - (gpu != nullptr && how.make != make_pipes ? 1 : 0))
      .set("ws_delta_bytes", resident)
      .set("late_frames", static_cast<double>(got.late()))
      .set("dropped_frames", static_cast<double>(u.dropped))
      .set("events", static_cast<double>(got.events().size()));
  r.check(us.count() != 0, "no frame came through");
  const std::string wrong = first_wrong(s, summaries, got);
  r.check(wrong.empty(), wrong);
  return {&how, rate, us.median()};
}

}  // namespace

void measure_all(const setup& s, const std::vector<const named_way*>& ways,
                 const std::vector<course>& courses, tool::report& out) {
  const auto summaries = summaries_of(s);
  const frame_alone alone = measure_alone(s);
  const auto gpu = gpu_meter::make(s.where);
  for (const course& c : courses) {
    std::vector<measured> all;
    for (const named_way* how : ways) {
      row r(fmt::format("{}, {}", how->name, text_of(c)));
      r.check(alone.wrong.empty(), "one frame alone: " + alone.wrong);
      all.push_back(add_row(r, s, *how, c, summaries, alone, gpu.get()));
      if (how == ways.back())
        for (const measured& m : all)
          if (m.how != how)
            r.baseline(m.how->text, c.fps == 0 ? "frames_per_s" : "p50_us",
                       c.fps == 0 ? m.frames_per_s : m.p50_us);
      out.add(r);
    }
  }
}

}  // namespace grosr::gesture
