#include "stage_programs.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "bytes.hpp"
#include "measure/machine.hpp"
#include "modules.hpp"
#include "wire.hpp"

namespace grosr::gesture {
namespace {

/// What this stage takes, from the first frame that counts on.
class meter {
 public:
  explicit meter(const char* name) { std::strncpy(report_.name, name, sizeof report_.name - 1); }
  void sees(std::uint64_t number, std::uint32_t warmup) {
    if (begun_ || number < warmup) return;
    begun_ = true;
    report_.began = cpu_time::now();
  }
  stage_report end(std::uint64_t dropped = 0) {
    report_.ended = cpu_time::now();
    if (!begun_) report_.began = report_.ended;
    report_.threads = thread_count();
    report_.resident = tool::resident_bytes();
    report_.dropped = dropped;
    return report_;
  }

 private:
  stage_report report_;
  bool begun_ = false;
};

/// What all stages but the first do: f(header, payload) for each frame. Returns the reports of
/// these before this one, and its own.
template <class T, class F>
std::vector<stage_report> serve(stream_reader& from, const char* name, simt::buffer<T>& payload,
                                const F& f) {
  meter taken_here(name);
  for (;;) {
    const piece_header h = from.next();
    if (h.ends != 0) break;
    if (h.bytes != payload.bytes())
      throw error(errc::bad_input, fmt::format("standard input: frame {} has {} bytes, not {}",
                                               h.number, h.bytes, payload.bytes()));
    taken_here.sees(h.number, from.header().warmup);
    from.payload(payload.data(), payload.bytes());
    f(h, payload.data());
  }
  std::vector<stage_report> reports = from.reports();
  reports.push_back(taken_here.end());
  return reports;
}

stream_header with_content(stream_header h, content c) {
  h.of = c;
  return h;
}

}  // namespace

void capture_stage(const recording& r, const course& c, bool after_go) {
  stream_header h;
  h.width = r.shape.width;
  h.height = r.shape.height;
  h.warmup = c.warmup;
  stream_writer to(STDOUT_FILENO, h);
  char go = 0;
  if (after_go && read_bytes(STDIN_FILENO, &go, 1, "standard input") == 0)
    throw neighbour_gone("standard input ended before it said that frames may come");
  meter taken_here("capture");
  feed from(c, {});
  while (const auto t = from.next()) {
    taken_here.sees(t->number, c.warmup);
    piece_header p;
    p.number = t->number;
    p.captured_ns = t->captured_ns;
    to.frame(p, r.frame(t->number % r.frames), r.shape.bytes());
  }
  to.end({taken_here.end(from.dropped())});
}

void transform_stage(const device& d) {
  stream_reader from(STDIN_FILENO, content::depths, "standard input");
  const frame_shape shape = from.header().shape();
  transform_module transform(d, shape);
  simt::buffer<std::uint16_t> depths(d, simt::space::pinned, cameras * shape.pixels());
  stream_writer to(STDOUT_FILENO, with_content(from.header(), content::clouds));
  to.end(serve(from, "transform", depths, [&](const piece_header& h, const std::uint16_t* frame) {
    transform(frame);
    to.frame(h, transform.result(), cameras * shape.pixels() * sizeof(point));
  }));
}

void filter_stage(const device& d, unsigned radius) {
  stream_reader from(STDIN_FILENO, content::clouds, "standard input");
  const frame_shape shape = from.header().shape();
  filter_module filter(d, shape, radius);
  simt::buffer<point> clouds(d, simt::space::pinned, cameras * shape.pixels());
  stream_writer to(STDOUT_FILENO, with_content(from.header(), content::filtered));
  to.end(serve(from, "filter", clouds, [&](const piece_header& h, const point* cloud) {
    filter(cloud);
    to.frame(h, filter.result(), clouds.bytes());
  }));
}

void detect_stage(const device& d, bool as_stream) {
  stream_reader from(STDIN_FILENO, content::filtered, "standard input");
  const frame_shape shape = from.header().shape();
  summary_module summary(d, shape);
  hands seen(shape);
  simt::buffer<point> clouds(d, simt::space::pinned, cameras * shape.pixels());
  std::unique_ptr<stream_writer> to;
  if (as_stream)
    to = std::make_unique<stream_writer>(STDOUT_FILENO,
                                         with_content(from.header(), content::events));
  const auto reports = serve(from, "detect", clouds, [&](piece_header h, const point* filtered) {
    summary(filtered);
    const std::vector<event>& events = seen.see(h.number, summary.result());
    h.delivered_ns = now_ns();
    if (to) return to->frame(h, events.data(), events.size() * sizeof(event));
    for (const event& e : events) {
      const std::string line = text_of(e) + "\n";
      if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() ||
          std::fflush(stdout) != 0)
        throw neighbour_gone("standard output: nobody reads it any more, or it is full");
    }
  });
  if (to) to->end(reports);
}

}  // namespace grosr::gesture
