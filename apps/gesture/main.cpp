// gesture: from the depth frames of two cameras to what hands do over a screen, in six ways that
// are measured beside each other; and the stages as programs that pipes connect.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/errors.hpp"
#include "cli/interrupt.hpp"
#include "cli/pick_device.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"
#include "measuring.hpp"
#include "scene.hpp"
#include "stage_programs.hpp"
#include "wire.hpp"

namespace grosr::gesture {
namespace {

constexpr std::uint32_t most_in_flight = 12;

struct gesture_options {
  std::optional<std::string> device, json, size, from, frames, warmup, recorded, seed, rate,
      in_flight, threads;
  std::vector<std::string> ways;
  std::vector<double> fps;
  std::string radius = "2", out = "-";
  std::optional<double> seconds;
  bool after_go = false, as_stream = false;
};

frame_shape size_of(const std::string& text) {
  frame_shape s;
  const char* const end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, s.width);
  if (width.ec == std::errc() && width.ptr != end && *width.ptr == 'x') {
    const auto height = std::from_chars(width.ptr + 1, end, s.height);
    if (height.ec == std::errc() && height.ptr == end && s.width >= least_side &&
        s.width <= most_side && s.height >= least_side && s.height <= most_side)
      return s;
  }
  throw tool::usage_error(fmt::format(
      "--size is \"{0}\"; give columns and rows from {1}x{1} to {2}x{2}, such as 320x240",
      tool::one_line(text), least_side, most_side));
}

std::uint32_t number(const char* what, const std::optional<std::string>& text,
                     std::uint32_t otherwise, std::uint64_t least, std::uint64_t most) {
  return text ? static_cast<std::uint32_t>(tool::parse_number(what, *text, least, most))
              : otherwise;
}

recording recording_of(const gesture_options& o, bool small) {
  if (o.from) {
    for (const auto& [given, name] :
         {std::pair(&o.size, "--size"), {&o.recorded, "--recorded"}, {&o.seed, "--seed"}})
      if (*given)
        throw tool::usage_error(
            fmt::format("{} is for frames that are drawn, and --from names some", name));
    return read_recording(*o.from);
  }
  const frame_shape s = o.size  ? size_of(*o.size)
                        : small ? frame_shape{32, 24}
                                : frame_shape{320, 240};
  return draw(s, number("--recorded", o.recorded, 30, 1, 100'000), 30,
              tool::parse_number("--seed", o.seed.value_or("1"), 0, ~std::uint64_t{0} >> 1));
}

std::uint32_t frames_in(double seconds, double rate) {
  return static_cast<std::uint32_t>(std::clamp(seconds * rate, 1.0, 1e9));
}

unsigned radius_of(const gesture_options& o) {
  return number("--radius", o.radius, 2, 1, most_radius);
}

std::vector<course> courses_of(const gesture_options& o, bool gpu) {
  std::vector<course> all;
  for (const double fps : o.fps.empty() ? std::vector<double>{30, 0} : o.fps) {
    course c;
    c.fps = fps;
    c.warmup = number("--warmup", o.warmup, gpu ? 30 : 1, 0, 1'000'000);
    const double seconds = o.seconds.value_or(gpu ? 5 : 0.5);
    if (o.frames)
      c.frames = number("--frames", o.frames, 0, 1, 100'000'000);
    else if (fps != 0)
      c.frames = frames_in(seconds, fps);
    else
      c.frames = 1'000'000'000;
    if (fps == 0 && !o.frames) c.seconds = seconds;
    all.push_back(c);
  }
  return all;
}

int measure(const gesture_options& o) {
  const device where = tool::pick_device(o.device);
  const unsigned radius = radius_of(o);
  const unsigned threads = number("--threads", o.threads, 0, 0, 16);
  const unsigned in_flight = number("--in-flight", o.in_flight, 4, 1, most_in_flight);
  const std::vector<course> courses = courses_of(o, where.is_cuda());
  std::vector<const named_way*> ways;
  for (const named_way& way : all_ways())
    if (o.ways.empty() || std::find(o.ways.begin(), o.ways.end(), way.name) != o.ways.end())
      ways.push_back(&way);
  // Of enough frames that none comes again while it is being looked at.
  recording frames = recording_of(o, !where.is_cuda());
  constexpr std::uint32_t least_frames = most_in_flight + 4;
  while (frames.frames < least_frames) {
    const std::size_t once = frames.depths.size();
    frames.depths.resize(2 * once);
    std::copy_n(frames.depths.begin(), once, frames.depths.begin() + std::ptrdiff_t(once));
    frames.frames *= 2;
  }
  tool::report out("gesture", where, tool::json_file(o.json), tool::report::style::full);
  try {
    out.remark(fmt::format("{} frames of 2 x {}x{} pixels, filtered over {} x {}", frames.frames,
                           frames.shape.width, frames.shape.height, 2 * radius + 1,
                           2 * radius + 1));
    measure_all({where, radius, in_flight, threads, frames}, ways, courses, out);
  } catch (const tool::interrupt::interrupted&) {
    out.interrupted();
    out.finish();
    return tool::exit_interrupted;
  } catch (const std::exception& e) {
    out.failed(e.what());
    out.finish();
    throw;
  }
  return out.finish();
}

int record(const gesture_options& o) {
  const std::uint32_t rate = number("--rate", o.rate, 30, 1, most_rate);
  const recording r =
      draw(size_of(o.size.value_or("320x240")), frames_in(o.seconds.value_or(1), rate), rate,
           tool::parse_number("--seed", o.seed.value_or("1"), 0, ~std::uint64_t{0} >> 1));
  write_recording(r, o.out);
  return tool::exit_ok;
}

int capture(const gesture_options& o) {
  const recording r = read_recording(*o.from);
  course c;
  c.fps = o.fps.empty() ? r.rate : o.fps[0];
  c.warmup = number("--warmup", o.warmup, 0, 0, 1'000'000);
  c.frames = number("--frames", o.frames, r.frames, 1, 1'000'000'000);
  c.seconds = o.seconds.value_or(1e9);
  capture_stage(r, c, o.after_go);
  return tool::exit_ok;
}

/// A stage: where the one beside it has ended, that is not its own fault.
int stage(const std::function<void()>& work) {
  try {
    work();
    return tool::exit_ok;
  } catch (const neighbour_gone& e) {
    tool::say(fmt::format("gesture: {}\n", e.what()));
    return exit_neighbour_gone;
  }
}

}  // namespace
}  // namespace grosr::gesture

int main(int argc, char** argv) {
  using namespace grosr::gesture;
  CLI::App program{
      "Brings the depth frames of two cameras to what hands do over a screen: in points on the "
      "screen's axes, filtered, counted, and as events. Six ways to do it are measured beside each "
      "other: on the CPU, as four processes, as modules, twice by hand, and as a dataflow graph",
      "gesture"};
  gesture_options o;
  std::vector<std::string> ways;
  for (const named_way& way : all_ways()) ways.push_back(way.name);
  const auto add_device = [&](CLI::App& to) {
    to.add_option("--device", o.device, "Where: cuda:N or host:N; the best present by default")
        ->type_name("D");
  };
  const auto add_radius = [&](CLI::App& to) {
    to.add_option("--radius", o.radius, "The filter looks at (2 N + 1)^2 points; 1 to 4, default 2")
        ->type_name("N");
  };
  const auto fps_option = [&](CLI::App& to, const char* text) {
    return to.add_option("--fps", o.fps, text)
        ->check(grosr::tool::seconds_between(0, 1000))
        ->type_name("F");
  };
  const auto add_seconds = [&](CLI::App& to, const char* text) {
    to.add_option("--seconds", o.seconds, text)
        ->check(grosr::tool::seconds_between(0.001, 1e9))
        ->type_name("S");
  };
  add_device(program);
  add_radius(program);
  program
      .add_option("--from", o.from, "A recording; - is standard input. Without it frames are drawn")
      ->type_name("FILE");
  program.add_option("--size", o.size, "Of the frames that are drawn; 320x240 on GPUs, else 32x24")
      ->type_name("WxH");
  program.add_option("--recorded", o.recorded, "Frames that are drawn, and shown in a loop; 30")
      ->type_name("N");
  program.add_option("--seed", o.seed, "Of what is drawn; 1")->type_name("N");
  fps_option(program,
             "Frames a second, as cameras give them; 0: as fast as they are taken; several; 30 and "
             "0 by default");
  add_seconds(program, "How long each way runs; 5 on GPUs, else 0.5");
  program.add_option("--frames", o.frames, "Frames that count, instead of --seconds")
      ->type_name("N");
  program.add_option("--warmup", o.warmup, "Frames before them; 30 on GPUs, else 1")
      ->type_name("N");
  program
      .add_option("--threads", o.threads,
                  "Of the executor of flow; 0, the default: the thread that pushes does all")
      ->type_name("N");
  program
      .add_option("--in-flight", o.in_flight,
                  "Frames that best-by-hand and flow work on at a time; 1 to 12, default 4")
      ->type_name("N");
  program
      .add_option("--way", o.ways,
                  "Compare these alone: " + fmt::format("{}", fmt::join(ways, ", ")))
      ->check(CLI::IsMember(ways))
      ->type_name("W");
  program.add_option("--json", o.json, "Also write the results to FILE; - is standard output")
      ->type_name("FILE");

  CLI::App& record_command =
      *program.add_subcommand("record", "Draw frames, and write a recording");
  record_command.add_option("--size", o.size, "320x240 by default")->type_name("WxH");
  add_seconds(record_command, "1 by default");
  record_command.add_option("--rate", o.rate, "Frames a second; 30")->type_name("N");
  record_command.add_option("--seed", o.seed, "1 by default")->type_name("N");
  record_command.add_option("-o,--out", o.out, "Where to; - is standard output, the default")
      ->type_name("FILE");

  CLI::App& capture_command = *program.add_subcommand(
      "capture", "Stage 1: write the frames of a recording to a pipe when they are due");
  capture_command.add_option("FILE", o.from, "The recording; - is standard input")->required();
  fps_option(capture_command, "Frames a second; 0: as fast as they are read; the recording's rate")
      ->expected(1);
  capture_command.add_option("--frames", o.frames, "So many, in a loop; those of the recording")
      ->type_name("N");
  add_seconds(capture_command, "End after so long");
  capture_command.add_option("--warmup", o.warmup, "Frames before those that count; 0")
      ->type_name("N");
  capture_command.add_flag("--after-go", o.after_go)->group("");
  CLI::App& transform_command =
      *program.add_subcommand("transform", "Stage 2: from depths to points on the screen's axes");
  add_device(transform_command);
  CLI::App& filter_command = *program.add_subcommand("filter", "Stage 3: filter noise");
  add_device(filter_command);
  add_radius(filter_command);
  CLI::App& detect_command =
      *program.add_subcommand("detect", "Stage 4: find hands, and print what they do");
  add_device(detect_command);
  detect_command.add_flag("--stream", o.as_stream)->group("");
  program.require_subcommand(0, 1);
  program.footer(
      "Examples:\n"
      "  gesture\n"
      "  gesture --fps 0 --radius 3 --way best-by-hand --way flow --json gesture.json\n"
      "  gesture record --seconds 2 -o hands.rec\n"
      "  gesture --from hands.rec --fps 60\n"
      "  gesture capture hands.rec | gesture transform | gesture filter | gesture detect\n\n"
      "Exit code: 0; 1 if a result was wrong or a way failed; 2 if nothing could be started; 3 of "
      "a\n"
      "stage whose neighbour has ended early; 130 on Ctrl-C.");
  return grosr::tool::run_program(program, argc, argv, [&] {
    if (record_command) return record(o);
    if (capture_command) return stage([&] { capture(o); });
    if (transform_command)
      return stage([&] { transform_stage(grosr::tool::pick_device(o.device)); });
    if (filter_command)
      return stage([&] { filter_stage(grosr::tool::pick_device(o.device), radius_of(o)); });
    if (detect_command)
      return stage([&] { detect_stage(grosr::tool::pick_device(o.device), o.as_stream); });
    return measure(o);
  });
}
