// Where calls that would block wait: one thread with an epoll.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "sys/waiter.hpp"

namespace grosr::sys {

/// Threads may call all of it at once; so may `resume`, except the destructor. A thread that calls
/// close() or stop() holds no lock that a `resume` takes.
class reactor {
 public:
  using clock = std::chrono::steady_clock;

  /// Throws std::system_error when there are no descriptors left.
  reactor();
  reactor(const reactor&) = delete;
  reactor& operator=(const reactor&) = delete;
  ~reactor();  // stops

  /// Waits until `descriptor` is ready for `events` (POLLIN, POLLOUT ...; errors and hang-ups
  /// always count) or `until` has passed. -1: for the deadline alone; without one, for stop().
  ///
  /// Readiness that is there already counts. Those that wait for exactly POLLIN are resumed in the
  /// order they came, until one goes on waiting; so are those for exactly POLLOUT. Those for
  /// anything else (poll) are all resumed, and before these. A thread that goes on waiting though
  /// the descriptor says it is ready is tried again at its next event, or after 1 to 64 ms.
  ///
  /// `w` does not wait already. Its own `resume` may call this for any cause but `stopped`, and
  /// then returns true.
  ///
  /// Returns 0, and `w` may have been resumed by then; or, and it never will be: -EPERM (epoll does
  /// not take the descriptor: it never blocks), -EBADF (not open, or being closed), -ESHUTDOWN
  /// (stopped), -EAGAIN (no thread), -ENOMEM, or what else epoll_ctl says.
  long wait(waiter& w, int descriptor, short events, std::optional<clock::time_point> until = {});

  /// To be called before a descriptor is closed: resumes all its waiters with `closed`, and returns
  /// when they and those being resumed have returned; meanwhile waits for it are refused. Called
  /// from a `resume` it does not wait for those that it was called from: one of them that then
  /// goes on waiting is resumed with `closed`. From one resumed with `closed` for the same
  /// descriptor it returns at once.
  ///
  /// A thread that waits for a number that was closed without this waits until the number is waited
  /// for again, as another file, and is then resumed with `closed`.
  void close(int descriptor);

  /// Refuses waits from now on, resumes all with `stopped` and returns when they have been. From a
  /// `resume` it does not wait for those that it was called from.
  void stop();

  /// Waiters whose last `resume` has not returned.
  std::size_t waiting() const;

 private:
  struct entry;   // a descriptor and its waiters
  struct page;    // of entries
  struct frame;   // a `resume` that has not returned
  struct served;  // what came of an event
  using guard = std::unique_lock<std::mutex>;

  entry* find(int descriptor) const;
  entry* make(int descriptor);
  waiter_queue& queue_of(entry* e, short events);
  void link(waiter& w, waiter_queue& q, waiter* before);
  bool come(waiter& w, clock::time_point until);
  void take_arrivals();
  void end_arrivals();
  void unlink(waiter& w, waiter_queue& q);
  bool update(entry& e, short events);
  long arm(entry& e, short events);
  void lose(entry& e);
  void set_alarm();
  bool start();
  bool on_thread() const { return thread_.get_id() == std::this_thread::get_id(); }
  bool resuming(int descriptor) const;

  void run();
  bool resume(guard& lock, waiter& w, wake cause);
  void serve(guard& lock, entry& e, short ready);
  void serve(guard& lock, entry& e, waiter_queue& q, short ready, served& s);
  void expire(guard& lock);
  void expire_alone(guard& lock, clock::time_point now);
  void end_closed(guard& lock);
  void end_all(guard& lock);

  const int epoll_, alarm_;  // alarm_: a timer, for deadlines and for waking the thread
  mutable std::mutex lock_;  // of all below; not held while a waiter is resumed
  std::condition_variable returned_;
  std::vector<std::unique_ptr<page>> pages_;
  waiter_queue alone_;   // those without a descriptor
  waiter_queue closed_;  // those to be resumed with `closed`
  deadlines deadlines_;  // of waiters, and of entries to be looked at again
  frame* frames_ = nullptr;
  std::uint64_t next_number_ = 0;
  std::size_t waiting_ = 0;
  static constexpr std::int64_t awake = -1;
  // ns; 0: not set; awake: the thread will look at the arrivals, and set it. Written with the lock.
  std::atomic<std::int64_t> alarm_at_{0};
  bool stopping_ = false, ending_ = false, ended_ = false;
  std::thread thread_;

  // Those that wait for a time alone come without the lock: a stack, and &no_more_ where they are
  // to take the lock. Who has the lock takes all of them.
  std::atomic<waiter*> arrivals_{&no_more_};
  waiter no_more_;
};

}  // namespace grosr::sys
