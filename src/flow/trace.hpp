// What an executor did and when, and the file in which it says so.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "grosr/flow/datablock.hpp"
#include "grosr/run/trace_file.hpp"
#include "grosr/simt/timeline.hpp"

namespace grosr::flow {

/// Nanoseconds of the steady clock, which may be known later: when a stream has come there.
class trace_time {
 public:
  trace_time() = default;
  trace_time(std::int64_t ns) : ns_(ns) {}
  trace_time(simt::stream_time t) : later_(std::move(t)) {}

  bool is_known() {
    if (ns_ >= 0) return true;
    if (const auto known = later_.ns()) {
      ns_ = *known;
      later_ = {};
    }
    return ns_ >= 0;
  }
  bool was_known() const { return ns_ >= 0; }
  std::uint64_t ns() const { return static_cast<std::uint64_t>(ns_); }

 private:
  std::int64_t ns_ = -1;
  simt::stream_time later_;
};

/// Runs of nodes, copies, and calls of the program, the newest of each; written when the executor
/// ends. Pushes and runs have numbers, from 1 on, by which the trace knows who made a block.
/// Thread-safe.
class trace_recorder {
 public:
  struct run {
    unsigned track = 0;
    std::uint64_t number = 0, run = 0;  ///< among all, and of its node
    std::string unit;
    const char* reason = "";  ///< why it ran then and there
    std::int64_t queued = 0, began = 0;
    trace_time begins, ends;
    std::string failed;
    std::vector<std::uint64_t> made_by;  ///< who made what it took
  };
  struct call {
    std::string what;
    std::uint64_t number = 0, made_by = 0;  ///< of a push; of what a pull took
    std::int64_t begins = 0, ends = 0;
    std::int32_t thread = 0;
  };

  /// Throws as run::trace_part_for().
  trace_recorder(const std::string& file, const std::vector<device>& devices);

  /// A node's track.
  unsigned add_track(const std::string& name);
  /// Asks no stream for the time.
  void add(run r);
  void add(call c);
  void add(const block_copy& c, const std::string& what, const char* reason);
  void mark(unsigned track, std::int64_t at, const std::string& text);
  /// Throws error(invalid_option) when the file cannot be written.
  void write();

 private:
  struct copied {
    block_copy is;
    std::string what;
    const char* reason;
    trace_time begins, ends;
  };
  struct marked {
    unsigned track;
    std::int64_t at;
    std::string text;
  };
  static constexpr std::size_t kept = 200'000;

  template <class E>
  static void keep(std::deque<E>& all, E e);

  const grosr::run::trace_part part_;
  const std::vector<device> devices_;
  std::mutex mutex_;
  std::vector<std::string> tracks_;
  std::deque<run> runs_;
  std::deque<call> calls_;
  std::deque<marked> marks_;
  std::mutex copies_mutex_;  // under which streams are asked for times
  std::deque<copied> copies_;
  std::size_t told_ = 0;
};

/// For whom this thread looks at blocks, while it exists.
class looks_for {
 public:
  looks_for(std::string what, const char* reason);
  ~looks_for();
  looks_for(const looks_for&) = delete;

  /// Null: for nobody that the executor knows.
  static const looks_for* here();

  const std::string what;
  const char* const reason;

 private:
  const looks_for* const before_;
};

}  // namespace grosr::flow
