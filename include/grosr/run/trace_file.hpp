// Traces in the Trace Event Format, which Perfetto and chrome://tracing open.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "grosr/simt/device.hpp"

namespace grosr::run {

/// Where one of several that write a trace writes it.
struct trace_part {
  std::string file;
  unsigned number;  ///< of those in this process that were asked for the same file, from 1
};

/// The first one that is asked for `file` gets that; later ones "x.PROGRAM.PID.DEVICE.2.json" for
/// "x.json", and so on. Thread-safe. Throws error(invalid_option) when it cannot be written.
trace_part trace_part_for(const std::string& file, const device& d);

/// Writes one event after the other. Times are in nanoseconds, tracks have numbers, and `arguments`
/// are members of a JSON object. One thread at a time.
class trace_file {
 public:
  /// `about`: members of "otherData". Times are written as what has gone by since `origin`.
  trace_file(const trace_part& part, const std::string& about, std::uint64_t origin);

  void name_process(std::uint64_t track, const std::string& name);
  /// Tracks are shown in the order of `place`.
  void name_track(std::uint64_t track, const std::string& name, std::uint64_t place);
  void span(std::uint64_t track, std::uint64_t begin, std::uint64_t end, const std::string& name,
            const std::string& arguments);
  void mark(std::uint64_t track, std::uint64_t at, const std::string& name,
            const std::string& arguments = {});
  void counter(std::uint64_t track, std::uint64_t at, const std::string& name,
               const std::string& arguments);
  /// Both ends lie within what their tracks did then. `id` is the arrow's alone.
  void arrow(const std::string& name, std::uint64_t id, std::uint64_t from, std::uint64_t begin,
             std::uint64_t to, std::uint64_t end);
  /// Throws error(invalid_option) when the file could not be written.
  void close();

  /// As a string of JSON.
  static std::string quoted(const std::string& s);

 private:
  void add(const char* phase, std::uint64_t track, std::uint64_t at, const std::string& name,
           const std::string& more);

  std::string path_;
  std::ofstream out_;
  std::uint64_t origin_;
  bool first_ = true;
};

/// Of this program, in letters that a file's name can have.
std::string program_name();

}  // namespace grosr::run
