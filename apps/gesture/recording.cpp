#include "recording.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "bytes.hpp"
#include "cli/interrupt.hpp"
#include "cli/text.hpp"
#include "grosr/simt/error.hpp"

namespace grosr::gesture {
namespace {

/// Closed at the end, unless it is a standard stream.
struct descriptor {
  int it;
  ~descriptor() {
    if (it > 2) ::close(it);
  }
};

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw error(errc::bad_input,
              fmt::format("{}: {}; 'gesture record' makes recordings", name, what));
}

}  // namespace

recording read_recording(const std::string& path) {
  const bool is_pipe = path == "-";
  const std::string name = is_pipe ? "standard input" : tool::one_line(path);
  const descriptor from{is_pipe ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (from.it < 0)
    throw error(errc::bad_input,
                fmt::format("{}: cannot be opened ({})", name, std::strerror(errno)));
  file_header h;
  const std::size_t got = read_bytes(from.it, &h, sizeof h, name);
  if (got >= sizeof h.magic && h.magic != file_header::right_magic)
    refuse(name, "it is no recording: it begins with other bytes");
  if (got != sizeof h)
    refuse(name, fmt::format("it ends after {} bytes, within the header of {}", got, sizeof h));
  if (h.cameras != cameras)
    refuse(name, fmt::format("it has frames of {} cameras, not of {}", h.cameras, cameras));
  if (h.width < least_side || h.width > most_side || h.height < least_side ||
      h.height > most_side || h.frames == 0 || h.rate == 0 || h.rate > most_rate)
    refuse(name, fmt::format("its header says {} frames of {}x{} pixels, {} a second; there are 1 "
                             "and more, from {}x{} to {}x{}, 1 to {} a second",
                             h.frames, h.width, h.height, h.rate, least_side, least_side, most_side,
                             most_side, most_rate));
  recording r{{h.width, h.height}, h.frames, h.rate, {}};
  if (h.frames > most_recorded_bytes / r.shape.bytes())
    refuse(name, fmt::format("its header says {} frames of {}x{} pixels, more than 4 GiB", h.frames,
                             h.width, h.height));
  // Grows as bytes come: a header may say what it likes.
  for (std::uint32_t i = 0; i < h.frames; ++i) {
    tool::interrupt::check();
    const std::size_t at = r.depths.size();
    r.depths.resize(at + cameras * r.shape.pixels());
    const std::size_t bytes = read_bytes(from.it, r.depths.data() + at, r.shape.bytes(), name);
    if (bytes != r.shape.bytes())
      refuse(name, fmt::format("it is cut off: frame {} of {} has {} of {} bytes", i + 1, h.frames,
                               bytes, r.shape.bytes()));
  }
  if (char more = 0; read_bytes(from.it, &more, 1, name) != 0)
    refuse(name, fmt::format("it has more bytes than the {} frames of {}x{} pixels that its header "
                             "says",
                             h.frames, h.width, h.height));
  return r;
}

void write_recording(const recording& r, int to, const std::string& name) {
  file_header h;
  h.width = r.shape.width;
  h.height = r.shape.height;
  h.frames = r.frames;
  h.rate = r.rate;
  write_bytes(to, &h, sizeof h, name);
  for (std::uint32_t i = 0; i < r.frames; ++i) {
    tool::interrupt::check();
    write_bytes(to, r.frame(i), r.shape.bytes(), name);
  }
}

void write_recording(const recording& r, const std::string& path) {
  if (path == "-") return write_recording(r, STDOUT_FILENO, "standard output");
  const std::string name = tool::one_line(path);
  const descriptor to{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (to.it < 0)
    throw error(errc::write_failed,
                fmt::format("{}: cannot be made ({})", name, std::strerror(errno)));
  tool::interrupt::remove_when_cut_off(path);
  try {
    write_recording(r, to.it, name);
  } catch (...) {
    ::unlink(path.c_str());
    tool::interrupt::keep_when_cut_off(path);
    throw;
  }
  tool::interrupt::keep_when_cut_off(path);
}

}  // namespace grosr::gesture
