// Calls that wait for a disk: many under way at once, on one thread that has an io_uring.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

namespace grosr::sys {

/// One such call; its owner keeps it. Submitted once at a time. What is made is what stands here,
/// and nobody but the owner writes it.
struct disk_call {
  enum class what : std::uint8_t { read, write, sync, sync_data };
  /// Called once a submission, no lock held; must not throw. `result`: the call's, or -errno;
  /// -ESHUTDOWN: it has not begun and never will. Once it is called the disk_call is its owner's,
  /// who may free it or submit it again.
  using function = void (*)(disk_call&, long result);
  function done = nullptr;

  what makes = what::read;
  int fd = -1;
  std::uint32_t bytes = 0;   ///< of a read, a write
  std::uint64_t memory = 0;  ///< where they lie; stays until `done`
  std::uint64_t offset = 0;  ///< in the file

  disk_call() = default;
  disk_call(const disk_call&) = delete;
  disk_call& operator=(const disk_call&) = delete;

 private:
  friend class disk_ring;
  disk_call* next_ = nullptr;
};

/// Calls begin in the order they were submitted, `entries` of them at a time. The ring and its
/// thread are made at the first call. Any thread may call all of it.
class disk_ring {
 public:
  /// `allowed`: false: there is never a ring. `entries`: at least 1.
  explicit disk_ring(bool allowed = true, unsigned entries = 256);
  disk_ring(const disk_ring&) = delete;
  disk_ring& operator=(const disk_ring&) = delete;
  ~disk_ring();  // stops

  /// Never waits for a call. Returns 0; or, and then `done` is never called: -ESHUTDOWN (stopped),
  /// -ENOSYS: there is no ring, and none will be: Linux is older than 5.12, or does not let this
  /// process have one, or this was built without liburing.
  long submit(disk_call& c);

  /// Refuses calls from now on, ends those that have not begun, and returns when the others have
  /// ended, however long that takes. Not to be called from a `done`.
  void stop();

  /// Calls that were submitted and have not ended.
  std::size_t waiting() const;

 private:
  struct ring;
  using guard = std::unique_lock<std::mutex>;

  bool start();
  void work();
  bool fill();
  void reap();
  void wake();

  const unsigned entries_;
  mutable std::mutex lock_;  // of all below but the ring; not held while a call is ended
  disk_call *first_ = nullptr, *last_ = nullptr;  // not begun
  std::size_t waiting_ = 0;
  bool absent_;
  bool sleeps_ = false;  // the thread is to be woken by whoever submits
  bool stopping_ = false;
  bool runs_ = false;
  std::condition_variable ended_;
  std::thread thread_;
  std::unique_ptr<ring> ring_;  // the thread's own, once it runs
};

}  // namespace grosr::sys
