// Completions: what the host tells a resident runtime has ended, for a task that waits for it and
// holds no worker.
//
// A runtime opens a port. Device code that starts something hands a completion_target on, which
// names the port and, in words of the runtime's own, what waits. Whoever ends it on the host, a
// server of system calls for example, completes the target; the runtime brings the completion to
// the device as it brings tasks.
#pragma once

#include <cstdint>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/config.hpp"

namespace grosr::queue {

/// What a completion is for, in 48 bits; 0 is nothing.
///
///   port (10) │ what waits, in the runtime's words (38)
struct completion_target {
  std::uint64_t bits = 0;

  static constexpr unsigned port_at = 38, port_bits = 10;
  static constexpr std::uint64_t waiter_mask = (std::uint64_t{1} << port_at) - 1;

  GROSR_DEVICE static constexpr completion_target of(std::uint32_t port, std::uint64_t waiter) {
    return {std::uint64_t{port} << port_at | (waiter & waiter_mask)};
  }
  GROSR_DEVICE constexpr std::uint32_t port() const {
    return static_cast<std::uint32_t>(bits >> port_at);
  }
  GROSR_DEVICE constexpr std::uint64_t waiter() const { return bits & waiter_mask; }
};

/// Something has ended. `source` and `number`: where the device finds what it left, in words of
/// whoever completes; a server of system calls names its device view, and the call's slot.
struct completion {
  std::uint64_t waiter;
  std::int64_t result;
  const void* source;
  std::uint32_t number;
  std::uint32_t reserved;
};

/// Takes completions for one runtime, from any thread of the host. expect() and complete() must not
/// wait for the device, call CUDA, or complete anything themselves.
class completion_port {
 public:
  /// Takes a number. Throws error(invalid_option) when there is none, of 1023.
  completion_port();
  virtual ~completion_port();
  completion_port(const completion_port&) = delete;

  std::uint32_t number() const { return number_; }

 protected:
  /// Before what the functions below use ends. Returns when none of them is under way, and none
  /// begins any more. `all_came`: nothing will be completed for the number, and another port may
  /// have it; else nobody gets it in this process.
  void close(bool all_came);
  /// From now on it counts as not open, and takes nothing: nobody waits there any more. Any thread,
  /// also one within expect() or complete(). Completions that are under way may still come.
  void refuse() { simt::atomic_ref(refuses_).store(1u, simt::relaxed); }
  /// `count` calls were begun that will be completed here.
  virtual void expect(std::uint32_t count) = 0;
  /// Takes `count` completions.
  virtual void complete(const completion* ended, std::uint32_t count) = 0;

 private:
  friend void expect(completion_target to, std::uint32_t count);
  friend class completion_batch;
  friend bool is_open(completion_target to);
  bool takes() const { return simt::atomic_ref(refuses_).load(simt::relaxed) == 0; }
  std::uint32_t number_;
  mutable std::uint32_t refuses_ = 0;
};

/// Tells the port that `to` names of `count` completions to come, before the first of them. Any
/// thread. A port that is not open is told nothing.
void expect(completion_target to, std::uint32_t count = 1);

/// Hands a completion to the port that `to` names, its waiter filled in. If that is not open,
/// nobody waits any more. Any thread.
void complete(completion_target to, completion c);

/// Whether the port that `to` names is open, and does not refuse(). Any thread.
bool is_open(completion_target to);

/// Hands over the completions that this thread's batch keeps, if it has one. For a thread that is
/// about to wait.
void hand_over_kept();

/// While one lives, the completions of its thread are kept. They go to their ports together: when
/// there are `most`, at flush(), and at its end. Before its thread waits for anything, it calls
/// flush() or hand_over_kept(). A batch within another does nothing.
class completion_batch {
 public:
  completion_batch();
  ~completion_batch();
  completion_batch(const completion_batch&) = delete;

  void flush();

 private:
  friend void complete(completion_target to, completion c);
  friend void hand_over_kept();
  static constexpr std::uint32_t most = 64;
  void add(completion_target to, const completion& c);

  bool inner_;
  std::uint32_t count_ = 0;
  std::uint32_t port_[most];
  completion kept_[most];
};

}  // namespace grosr::queue
