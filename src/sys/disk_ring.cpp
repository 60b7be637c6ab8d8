#include "sys/disk_ring.hpp"

#include <cerrno>

#include "grosr/queue/completion.hpp"
#include "sys/linux_result.hpp"
#include "sys/thread.hpp"

#if GROSR_HAS_LIBURING
#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include <chrono>
#include <new>
#include <system_error>
#endif

namespace grosr::sys {

disk_ring::disk_ring(bool allowed, unsigned entries) : entries_(entries), absent_(!allowed) {}

std::size_t disk_ring::waiting() const {
  guard lock(lock_);
  return waiting_;
}

#if GROSR_HAS_LIBURING

struct disk_ring::ring {
  io_uring uring{};
  int event = -1;  // who submits writes to it what wakes the thread
  std::uint64_t heard = 0;
  bool listens = false;  // a read of the event is under way
  unsigned under_way = 0;

  /// Whether this process may have a ring that does what is needed.
  bool make(unsigned entries) {
    std::uint64_t asked[6] = {entries};
    if (injected_result(SYS_io_uring_setup, asked) != 0) return false;
    event = ::eventfd(0, EFD_CLOEXEC);
    if (event < 0) return false;
    io_uring_params p{};
    // One more than calls, for the event.
    if (io_uring_queue_init_params(entries + 1, &uring, &p) < 0) return close_event();
    // Before 5.12 threads that Linux made for a ring were not the program's.
    if ((p.features & IORING_FEAT_NATIVE_WORKERS) != 0) return true;
    io_uring_queue_exit(&uring);
    return close_event();
  }
  bool close_event() {
    ::close(event);
    event = -1;
    return false;
  }
  ~ring() {
    if (event < 0) return;
    io_uring_queue_exit(&uring);
    ::close(event);
  }

  void begin(disk_call& c) {
    io_uring_sqe* e = io_uring_get_sqe(&uring);
    switch (c.makes) {
      case disk_call::what::read:
        io_uring_prep_read(e, c.fd, reinterpret_cast<void*>(c.memory), c.bytes, c.offset);
        break;
      case disk_call::what::write:
        io_uring_prep_write(e, c.fd, reinterpret_cast<const void*>(c.memory), c.bytes, c.offset);
        break;
      case disk_call::what::sync:
        io_uring_prep_fsync(e, c.fd, 0);
        break;
      case disk_call::what::sync_data:
        io_uring_prep_fsync(e, c.fd, IORING_FSYNC_DATASYNC);
        break;
    }
    io_uring_sqe_set_data(e, &c);
    ++under_way;
  }

  void listen() {
    if (listens) return;
    io_uring_sqe* e = io_uring_get_sqe(&uring);
    io_uring_prep_read(e, event, &heard, sizeof heard, 0);
    io_uring_sqe_set_data(e, nullptr);
    listens = true;
  }
};

disk_ring::~disk_ring() { stop(); }

bool disk_ring::start() {
  if (runs_) return true;
  if (absent_) return false;
  try {
    auto made = std::make_unique<ring>();
    if (made->make(entries_)) {
      ring_ = std::move(made);
      thread_ = quiet_thread("grosr disk", [this] { work(); });
      runs_ = true;
      return true;
    }
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
  ring_.reset();
  absent_ = true;
  return false;
}

long disk_ring::submit(disk_call& c) {
  guard lock(lock_);
  if (stopping_) return -ESHUTDOWN;
  if (!start()) return -ENOSYS;
  c.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &c;
  last_ = &c;
  ++waiting_;
  wake();
  return 0;
}

// Holding the lock: the event is there as long as the thread.
void disk_ring::wake() {
  if (!sleeps_) return;
  sleeps_ = false;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(ring_->event, &one, sizeof one);
}

void disk_ring::stop() {
  guard lock(lock_);
  stopping_ = true;
  while (disk_call* c = first_) {
    first_ = c->next_;
    if (first_ == nullptr) last_ = nullptr;
    --waiting_;
    lock.unlock();
    c->done(*c, -ESHUTDOWN);
    lock.lock();
  }
  wake();
  ended_.wait(lock, [this] { return !runs_; });
  std::thread ends = std::move(thread_);
  lock.unlock();
  if (ends.joinable()) ends.join();
}

void disk_ring::work() {
  while (fill()) {
    ring_->listen();
    const int began = io_uring_submit_and_wait(&ring_->uring, 1);
    // Short of memory: what was not begun is tried again.
    if (began < 0 && began != -EINTR) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    reap();
  }
  guard lock(lock_);
  runs_ = false;
  ended_.notify_all();
}

// False: it has stopped.
bool disk_ring::fill() {
  guard lock(lock_);
  for (; first_ != nullptr && ring_->under_way < entries_; first_ = first_->next_)
    ring_->begin(*first_);
  if (first_ == nullptr) last_ = nullptr;
  sleeps_ = first_ == nullptr;  // else there is no room, and a call that ends makes some
  return !stopping_ || ring_->under_way != 0;
}

void disk_ring::reap() {
  {
    guard lock(lock_);
    sleeps_ = false;
  }
  queue::completion_batch together;
  unsigned head = 0, seen = 0;
  io_uring_cqe* e = nullptr;
  std::size_t ended = 0;
  io_uring_for_each_cqe(&ring_->uring, head, e) {
    ++seen;
    auto* c = static_cast<disk_call*>(io_uring_cqe_get_data(e));
    if (c == nullptr) {
      ring_->listens = false;
      continue;
    }
    --ring_->under_way;
    ++ended;
    c->done(*c, e->res);
  }
  io_uring_cq_advance(&ring_->uring, seen);
  together.flush();
  guard lock(lock_);
  waiting_ -= ended;
}

#else

struct disk_ring::ring {};
disk_ring::~disk_ring() = default;
long disk_ring::submit(disk_call&) {
  guard lock(lock_);
  return stopping_ ? -ESHUTDOWN : -ENOSYS;
}
void disk_ring::stop() {
  guard lock(lock_);
  stopping_ = true;
}

#endif

}  // namespace grosr::sys
