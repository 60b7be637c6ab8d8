// What goes through the pipes between stages: a header, frames, and at the end what each stage has
// taken.
#pragma once

#include <stdexcept>
#include <vector>

#include "feed.hpp"
#include "usage.hpp"

namespace grosr::gesture {

enum class content : std::uint32_t { depths = 1, clouds, filtered, events };
const char* name_of(content c);

struct stream_header {
  static constexpr std::uint64_t right_magic = 0x3145'5049'5054'5347;  // "GSTPIPE1"
  std::uint64_t magic = right_magic;
  content of = content::depths;
  std::uint32_t width = 0, height = 0, warmup = 0;

  frame_shape shape() const { return {width, height}; }
};

/// Before each frame, and, with `ends`, before reports; so many bytes follow.
struct piece_header {
  std::uint64_t number = 0, bytes = 0;
  std::int64_t captured_ns = 0, delivered_ns = 0;  ///< the latter of events alone
  std::uint64_t ends = 0;
};

/// Of a stage, from the first frame that counts on.
struct stage_report {
  char name[16] = {};
  cpu_time began, ended;
  std::uint64_t threads = 0, resident = 0, dropped = 0;
};

/// The stage before or behind has ended early, and has said why if it could.
class neighbour_gone : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
inline constexpr int exit_neighbour_gone = 3;

/// Reads a stream from a descriptor. Throws neighbour_gone where it ends early, error(bad_input)
/// for other bytes; interrupted.
class stream_reader {
 public:
  stream_reader(int from, content wanted, std::string name);
  const stream_header& header() const { return header_; }

  /// The next frame's header; with `ends`, the last one, whose reports are in reports().
  piece_header next();
  void payload(void* to, std::size_t bytes);
  const std::vector<stage_report>& reports() const { return reports_; }

 private:
  void read(void* to, std::size_t bytes);

  const int from_;
  const std::string name_;
  stream_header header_;
  std::vector<stage_report> reports_;
};

/// Writes one. Throws neighbour_gone where nobody reads, error(write_failed); interrupted.
class stream_writer {
 public:
  stream_writer(int to, const stream_header& h);
  void frame(piece_header h, const void* payload, std::size_t bytes);
  void end(const std::vector<stage_report>& reports);

 private:
  void write(const void* from, std::size_t bytes);
  const int to_;
};

}  // namespace grosr::gesture
