// What a server of system calls can be told, and what it tells.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "grosr/sys/policy.hpp"

namespace grosr::sys {

/// Options of a server. 0 means "choose for me" where it says so.
struct options {
  /// Service threads, at most 256; 0: a quarter of the processors, 1 to 4.
  unsigned threads = 0;
  /// Rings, a power of two to 256; 0: two for each thread, at least 16 (4 on host:N).
  unsigned shards = 0;
  /// Calls that a ring holds, a power of two from 32 to 2^24; 0: 16384, on host:N 1024.
  std::uint32_t records = 0;
  /// Threads, 1 to 4096, that are started for calls that wait for no descriptor and no lock; more
  /// calls take turns.
  unsigned blocking_threads = 64;
  /// Threads, 1 to 4096, that are started for handlers; more of their calls queue.
  unsigned handler_threads = 64;
  /// Calls that may be under way at a time, 32 to 2^23, rounded up to 32s; 0: one for each thread
  /// that can be resident. A caller that makes one more waits, at most `patience`.
  std::uint32_t calls_in_flight = 0;
  /// Calls that tasks may await at a time (context.await), 32 to 2^22, rounded up to 32s. One more
  /// ends at once with -EAGAIN.
  std::uint32_t awaited_calls = 65'536;
  /// Calls that are begun in a second, of all kernels together; more wait. 0: as many as there are.
  std::uint64_t calls_per_second = 0;
  /// Chunks of 256 B, 4 KiB and 64 KiB in the arena, to 2^20; 0: by the device's size. They bound
  /// the bytes that are under way, but for those in shared host memory.
  std::array<std::uint32_t, 3> chunks{0, 0, 0};
  /// A service thread that found nothing for so long goes to sleep.
  std::chrono::microseconds spin{100};
  /// How long a call waits for a slot or a chunk before it fails with -EAGAIN.
  std::chrono::milliseconds patience{10'000};
  /// How long the destructor waits for calls that were made, and for a reader of what was printed.
  std::chrono::milliseconds exit_patience{5'000};
  sys::policy policy = {};
  std::uint32_t descriptors = 1024;  ///< that kernels may have open at a time
  /// Bytes that kernels may have mapped (mmap) and in files of memory (memfd_create) at a time,
  /// together, each by its length; 0: half of the machine's memory. More is -ENOMEM of mmap,
  /// -ENOSPC of what makes a file of memory longer, and -ENFILE of memfd_create.
  std::uint64_t mapped_bytes = 0;
  /// Mappings that kernels may have at a time; 0: three quarters of those that Linux allows a
  /// process, the program's own included. One more is -ENOMEM.
  std::uint64_t mappings = 0;
  int print_to = 1;   ///< descriptor that sys::print writes to; -1: none, texts go nowhere
  int audit_to = -1;  ///< descriptor for a line a call, as strace writes them; -1: none
  /// Calls that wait for the disk do so in an io_uring, where there is one; else, or if false, on
  /// threads.
  bool io_uring = true;
  /// Service threads, and those that they start, run on the processors of the NUMA node near the
  /// device, where there are several nodes and the process may use as many processors of that one
  /// as there are service threads.
  bool pin = true;
  /// host:N only: bytes travel through the arena, as on a GPU, not in place.
  bool use_arena = false;
};

/// One call's counts since the server began.
struct call_statistics {
  std::string name;  ///< "pread64", "handler 3", "handlers from 255", "print"
  std::uint64_t calls = 0, errors = 0, bytes = 0;
  /// On the host, in all. Without calls that waited for a peer or on a thread.
  double seconds = 0;
  /// Calls by the nanoseconds they took on the host: at i, those of [2^i, 2^(i+1)); those that
  /// `seconds` leaves out are not here.
  std::array<std::uint64_t, 40> latency{};

  /// How many `latency` counts.
  std::uint64_t timed() const;

  /// Nanoseconds within which that share of them (0 to 1) ended: the upper end of a bin of the
  /// histogram. 0 without calls.
  double within_ns(double share) const;
};

/// What a server did since it began. Taken while it works, it may miss the newest batches.
struct statistics {
  std::vector<call_statistics> calls;  ///< those that were made, the most frequent first
  std::uint64_t batches = 0;           ///< how often a thread took records
  std::uint64_t denied = 0;            ///< calls that ended at once with -EPERM
  std::uint64_t sleeps = 0;            ///< how often a thread fell asleep
  std::uint64_t waited = 0;            ///< calls that waited for a peer, the disk, or on a thread
  std::uint64_t by_ring = 0;           ///< of them, those that waited in an io_uring
  std::uint64_t thrown = 0;            ///< handlers that threw
  std::uint64_t unwritten = 0;         ///< bytes of printed text that could not be written
  std::uint64_t unaudited = 0;         ///< bytes of the audit log that could not be written
  std::size_t device_memory = 0, host_memory = 0;  ///< bytes held
};

/// The same as a JSON document, of one line: {"calls": [{"name", "calls", "errors", "bytes",
/// "seconds", "p50_ns", "p99_ns", "latency_log2_ns": {"10": calls of [2^10, 2^11) ns, ...}}, ...],
/// "batches", "denied", "sleeps", "waited", "by_ring", "thrown", "unwritten_bytes",
/// "unaudited_bytes", "device_memory_bytes", "host_memory_bytes"}.
std::string to_json(const statistics& s);

}  // namespace grosr::sys
