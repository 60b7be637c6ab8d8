#include "wire.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include "bytes.hpp"
#include "grosr/simt/error.hpp"
#include "recording.hpp"

namespace grosr::gesture {

const char* name_of(content c) {
  switch (c) {
    case content::depths:
      return "depths, which 'gesture capture' writes";
    case content::clouds:
      return "clouds, which 'gesture transform' writes";
    case content::filtered:
      return "filtered clouds, which 'gesture filter' writes";
    default:
      return "events";
  }
}

stream_reader::stream_reader(int from, content wanted, std::string name)
    : from_(from), name_(std::move(name)) {
  const std::size_t got = read_bytes(from_, &header_, sizeof header_, name_);
  if (got == 0)
    throw neighbour_gone(
        fmt::format("{} ended before anything came; it is to be {}", name_, name_of(wanted)));
  const stream_header& h = header_;
  if (got != sizeof h || h.magic != stream_header::right_magic || h.of != wanted ||
      h.width < least_side || h.width > most_side || h.height < least_side || h.height > most_side)
    throw error(errc::bad_input, fmt::format("{} is no stream of {}", name_, name_of(wanted)));
}

void stream_reader::read(void* to, std::size_t bytes) {
  const std::size_t got = read_bytes(from_, to, bytes, name_);
  if (got != bytes)
    throw neighbour_gone(
        fmt::format("{} ended in the midst: the stage before this one has ended early", name_));
}

piece_header stream_reader::next() {
  piece_header h;
  read(&h, sizeof h);
  if (h.ends == 0) return h;
  constexpr std::size_t most_stages = 16;
  if (h.bytes % sizeof(stage_report) != 0 || h.bytes > most_stages * sizeof(stage_report))
    throw error(errc::bad_input, fmt::format("{}: its end has {} bytes", name_, h.bytes));
  reports_.resize(h.bytes / sizeof(stage_report));
  read(reports_.data(), h.bytes);
  return h;
}

void stream_reader::payload(void* to, std::size_t bytes) { read(to, bytes); }

stream_writer::stream_writer(int to, const stream_header& h) : to_(to) {
  // As much as a user may have without asking; fewer switches between processes.
  static_cast<void>(::fcntl(to_, F_SETPIPE_SZ, 1 << 20));
  write(&h, sizeof h);
}

void stream_writer::write(const void* from, std::size_t bytes) {
  try {
    write_bytes(to_, from, bytes, "standard output");
  } catch (const error& e) {
    throw neighbour_gone(e.what());
  }
}

void stream_writer::frame(piece_header h, const void* payload, std::size_t bytes) {
  h.bytes = bytes;
  write(&h, sizeof h);
  write(payload, bytes);
}

void stream_writer::end(const std::vector<stage_report>& reports) {
  piece_header h;
  h.ends = 1;
  h.bytes = reports.size() * sizeof(stage_report);
  write(&h, sizeof h);
  write(reports.data(), h.bytes);
}

}  // namespace grosr::gesture
