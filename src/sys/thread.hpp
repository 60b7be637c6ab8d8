// Threads of the server, which leave the program's signals to the program's threads.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <thread>
#include <utility>

namespace grosr::sys {

/// A thread that takes no signals but those of its own faults. `name`: at most 15 characters.
/// Throws std::system_error when there cannot be one more.
template <class Body>
std::thread quiet_thread(const char* name, Body body) {
  sigset_t all, before;
  sigfillset(&all);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&all, own);
  struct mask {
    sigset_t& before;
    ~mask() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } restore{before};
  pthread_sigmask(SIG_BLOCK, &all, &before);
  return std::thread([name, b = std::move(body)]() mutable {
    pthread_setname_np(pthread_self(), name);
    b();
  });
}

/// While it lives, a write of this thread to a reader that has gone, or beyond the largest file
/// that the program may have, does not end the program.
class no_write_signals {
 public:
  no_write_signals() {
    sigset_t writes;
    sigemptyset(&writes);
    sigaddset(&writes, SIGPIPE);
    sigaddset(&writes, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &writes, &before_);
  }
  ~no_write_signals() {
    for (int one : {SIGPIPE, SIGXFSZ}) {
      if (sigismember(&before_, one) == 1) continue;
      sigset_t own;
      sigemptyset(&own);
      sigaddset(&own, one);
      const timespec now{};
      while (sigtimedwait(&own, nullptr, &now) == one) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  no_write_signals(const no_write_signals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace grosr::sys
