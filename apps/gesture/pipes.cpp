// Four processes of this program, which pipes connect.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <stdexcept>

#include "bytes.hpp"
#include "children.hpp"
#include "ways.hpp"
#include "wire.hpp"

namespace grosr::gesture {
namespace {

class pipes final : public way {
 public:
  explicit pipes(const setup& s) : s_(s), recorded_(make_memory_file("recording")) {
    write_recording(s.frames, recorded_.get(), "a file in memory");
  }

  run_usage run(const course& c, delivery& to) override {
    children stages;
    auto [go_read, go] = make_pipe();
    owned_file results = start_all(c, stages, std::move(go_read));
    try {
      const run_usage u = run_all(to, results, go);
      if (const std::string why = stages.why_ended(); !why.empty())
        throw std::runtime_error("pipes: " + why);
      return u;
    } catch (const neighbour_gone&) {
      throw_why(stages, std::move(results));
    } catch (const error&) {
      throw_why(stages, std::move(results));
    }
  }

 private:
  /// Returns the end of the last pipe.
  owned_file start_all(const course& c, children& stages, owned_file in) const {
    const std::string device = s_.where.name();
    // Only the first stage has the recording.
    ::fcntl(recorded_.get(), F_SETFD, 0);
    const std::vector<std::vector<std::string>> all{
        {"capture", fmt::format("/proc/self/fd/{}", recorded_.get()), "--after-go", "--fps",
         fmt::format("{}", c.fps), "--warmup", fmt::format("{}", c.warmup), "--frames",
         fmt::format("{}", c.frames), "--seconds", fmt::format("{}", c.seconds)},
        {"transform", "--device", device},
        {"filter", "--device", device, "--radius", fmt::format("{}", s_.radius)},
        {"detect", "--device", device, "--stream"}};
    for (const auto& arguments : all) {
      auto [next, out] = make_pipe();
      stages.start(arguments, in, out);
      ::fcntl(recorded_.get(), F_SETFD, FD_CLOEXEC);
      in = std::move(next);
    }
    return in;
  }

  run_usage run_all(delivery& to, const owned_file& results, const owned_file& go) const {
    // Its header comes when all are ready.
    stream_reader from(results.get(), content::events, "the pipe from stage detect");
    write_bytes(go.get(), "", 1, "the pipe to stage capture");
    std::vector<event> events;
    for (;;) {
      const piece_header h = from.next();
      if (h.ends != 0) break;
      if (h.bytes > cells * 2 * sizeof(event))
        throw neighbour_gone("more events than there may be");
      events.resize(h.bytes / sizeof(event));
      from.payload(events.data(), events.size() * sizeof(event));
      to.events({h.number, h.captured_ns}, h.delivered_ns, events.data(), events.size());
    }
    run_usage u;
    for (const stage_report& r : from.reports()) {
      u.began.user_s += r.began.user_s;
      u.began.system_s += r.began.system_s;
      u.ended.user_s += r.ended.user_s;
      u.ended.system_s += r.ended.system_s;
      u.threads += static_cast<unsigned>(r.threads);
      u.other_bytes += r.resident;
      u.dropped += r.dropped;
    }
    return u;
  }

  [[noreturn]] static void throw_why(children& stages, owned_file results) {
    { const owned_file closed = std::move(results); }  // whoever writes there ends, too
    const std::string why = stages.why_ended();
    throw std::runtime_error(fmt::format(
        "pipes: {}", why.empty() ? "the stages ended early, and say nothing of it" : why));
  }

  const setup s_;
  const owned_file recorded_;
};

}  // namespace

std::unique_ptr<way> make_pipes(const setup& s) { return std::make_unique<pipes>(s); }

}  // namespace grosr::gesture
