// Threads for calls that may wait long for something that is no descriptor.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

namespace grosr::sys {

/// How a job's turn has come.
enum class turn { run, stopped };

/// A job; its owner keeps it. Submitted once at a time.
struct job {
  /// Called once a submission, no lock held; must not throw. `run`: on a thread of the pool.
  /// `stopped`: on the thread that stops; the job has not run and never will. Once it is called the
  /// job is its owner's, who may free it or submit it again.
  using function = void (*)(job&, turn);
  function act = nullptr;

  /// The job makes a system call that may wait long, and knows what -EINTR means: see
  /// workers::is_asked(). Others run to their end.
  bool interruptible = false;
  int descriptor = -1;  ///< what an interruptible one waits for; -1: no descriptor

  job() = default;
  explicit job(function f) : act(f) {}
  job(const job&) = delete;
  job& operator=(const job&) = delete;

 private:
  friend class workers;
  job* next_ = nullptr;
  std::uint64_t number_ = 0;
};

/// Jobs begin in the order they were submitted. Threads are made when a job finds none idle, up to
/// `most` (at least 1), and end after `idle` without a job. Any thread may call all of it; jobs may
/// only submit and ask for numbers.
///
/// No job waits behind others for ever, if those that wait are interruptible: while jobs queue, one
/// that has run for `turn_length` is asked to return, and another one has its turn.
class workers {
 public:
  explicit workers(unsigned most, std::chrono::milliseconds idle = std::chrono::seconds(2));
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;
  ~workers();  // stops

  /// Never waits for a job. Returns 0; or, and then the job's turn never comes: -ESHUTDOWN
  /// (stopped), -EAGAIN (there is no thread and none can be made).
  long submit(job& j);

  /// The same for a job that no other may hold up: -EAGAIN also when there are `most` threads and
  /// none is idle.
  long submit_now(job& j);

  /// Returns when all jobs submitted before have ended.
  void drain();

  /// Asks the interruptible jobs to return that wait for this descriptor, again and again until
  /// they have. Does not wait for them.
  void ask_users_of(int descriptor);

  /// In an interruptible job, whose call has ended with -EINTR: whether it was asked to return
  /// since the last such question. Then it returns (it may submit itself again, and comes behind
  /// those that queue) or, for a reason of its own, goes on, and will be asked again.
  static bool is_asked();

  /// Refuses jobs from now on, hands those back that have not begun, interrupts those that are
  /// interruptible until they return, and returns when all have ended, and the threads too. Others
  /// it waits for, however long that takes.
  void stop();

  std::size_t threads() const;
  std::size_t queued() const;

 private:
  struct active;  // a job that has begun
  struct sleeper;
  using clock = std::chrono::steady_clock;
  using guard = std::unique_lock<std::mutex>;

  long submit(job& j, bool now);
  bool add_thread();
  void work(std::list<std::thread>::iterator self);
  bool sleep(guard& lock);
  void act(guard& lock, turn t);
  bool need_usher();
  void usher();
  bool ask(clock::time_point now);

  static constexpr std::chrono::milliseconds turn_length{10};
  static thread_local active* here_;  // the job that this thread is in
  const unsigned most_;
  const std::chrono::milliseconds idle_;
  mutable std::mutex lock_;  // of all below; not held while a job acts
  std::condition_variable changed_, usher_wakes_;
  job *first_ = nullptr, *last_ = nullptr;
  std::size_t queued_ = 0;
  std::uint64_t next_number_ = 0;
  active *oldest_ = nullptr, *newest_ = nullptr;  // in the order of numbers
  sleeper* sleepers_ = nullptr;  // the last to fall asleep first, so that the others can end
  std::list<std::thread> threads_, ended_;
  std::thread usher_;  // asks jobs to return, while there is a reason to
  bool ushers_ = false;
  bool stopping_ = false;
};

}  // namespace grosr::sys
