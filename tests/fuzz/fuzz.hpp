// What a fuzzer of system calls has its kernels do, and what they leave for the host to look at.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/sys/server.hpp"

namespace grosr::tool::fuzz {

/// What is called.
enum class op : std::uint8_t {
  nothing,
  add,
  throws,
  throws_other,
  missing,
  raw,
  print,
  open,
  openat,
  close,
  pread,
  pwrite,
  read,
  write,
  readv,
  writev,
  lseek,
  fstat,
  ftruncate,
  fsync,
  fallocate,
  unlink,
  rename,
  mkdir,
  getdents,
  socket,
  bind,
  listen,
  connect,
  accept,
  sendto,
  send,
  recvfrom,
  recv,
  shutdown,
  setsockopt,
  getsockopt,
  getsockname,
  getpeername,
  poll,
  mmap,
  munmap,
  madvise,
  clock_gettime,
  nanosleep,
  getrandom,
  getrusage,
  count,
  check = 100,  ///< a write, and a read of what was written
};

/// By whom, and how.
enum class form : std::uint8_t {
  lane,
  lane_started,
  lane_attempt,
  lane_attempt_started,
  warp,
  warp_started,
  warp_attempt,
  block,
  block_started,
  block_producer,
  block_consumer,
  block_consumer_started,
  grid_producer,
  grid_consumer,
  grid_started,
  count,
};

/// What becomes of a started call.
enum class fate : std::uint8_t { wait, test, drop };

/// One call, as its caller noted it; the result is `running` until it has ended.
struct step {
  std::uint32_t turn;
  op what;
  form who;
  fate how;
  std::uint8_t padding;
  std::int64_t result;
  std::uint64_t
      a[4];  ///< the call's own: number and arguments, or descriptor, flags, bytes, offset
};
inline constexpr std::int64_t running = INT64_MIN;
inline constexpr std::uint32_t steps_a_lane = 16;

/// What a lane noted last: step `turn % steps_a_lane` is the newest.
struct lane_steps {
  step at[steps_a_lane];
  std::uint32_t turns;
};

/// A line a call: what a lane found wrong had come before, and the last `most` of each lane.
std::string text_of(std::span<const lane_steps> all, unsigned threads, unsigned most);
const char* name_of(op o);
const char* name_of(form f);

/// Handlers that the server has; `missing` is not installed.
struct add_handler {
  static constexpr sys::call_number number = 3;
  long operator()(long a, long b) const { return a + b; }
};
struct throwing_handler {
  static constexpr sys::call_number number = 5;
  long operator()(int what) const;
};
struct missing_handler {
  static constexpr sys::call_number number = 7777;
};

/// A Linux call, and what each argument is drawn as:
///   f descriptor, d directory, p path, b bytes, n their length, o offset, v flags, 0 zero,
///   a address of memory, m its length, c small count, k a process that is not there
struct raw_call {
  long number;
  char kinds[8];
};
const std::vector<raw_call>& raw_calls();

/// Paths: text that ends with 0, `path_room` bytes each.
inline constexpr std::uint32_t path_room = 5120;
struct path_list {
  std::vector<std::string> inside;   ///< below the folder, there or not
  std::vector<std::string> strange;  ///< neither: links, long ones, bad ones
  std::vector<std::string> outside;  ///< never to be opened, made, moved or removed
};

/// What one launch draws from.
struct grounds {
  std::uint64_t seed = 0;
  simt::shape grid{2, 64};
  std::uint32_t phases = 64;
  bool hostile = false;      ///< also other callers' descriptors and bytes; nothing is checked then
  bool in_place = false;     ///< the server looks at no pointers
  bool denied = false;       ///< the policy allows nothing
  std::uint64_t canary = 0;  ///< bytes that no call may bring
  std::vector<int> files;    ///< granted, one a warp: for writes that are checked
  std::vector<int> strangers;          ///< the program's own
  std::vector<std::uint64_t> foreign;  ///< addresses of the program's own memory
  std::uint16_t tcp_port = 0, udp_port = 0;
};

/// What a launch counted.
struct outcome {
  std::uint64_t calls, errors, waits_lost, printed, checked, refused;
  std::uint64_t by_op[static_cast<unsigned>(op::count)];
  std::uint64_t wrong;       ///< results that cannot be
  std::uint32_t wrong_lane;  ///< the first of them
  std::uint32_t wrong_kind;
  std::uint64_t wrong_number;  ///< of the call
  std::int64_t wrong_result;
};
/// What `wrong_kind` says.
const char* name_of_wrong(std::uint32_t kind);

/// Where a launch's memory lies; one launch at a time.
class traffic {
 public:
  /// `shared_bytes()` is to be shared with the server before start().
  traffic(const device& d, const grounds& g, const path_list& paths);
  ~traffic();
  std::span<std::byte> shared_bytes() const;

  void start(const sys::server& s);
  bool done() const;  ///< throws what a lane threw
  void quit();        ///< kernels end soon, unless they wait
  outcome result() const;
  /// What lanes noted; and last, what the lane had noted that found something wrong.
  std::span<const lane_steps> steps() const;

  /// How many slots and chunks are taken, of calls that have ended; when no kernel runs.
  static std::uint64_t places_taken(const device& d, const sys::server& s);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::tool::fuzz
