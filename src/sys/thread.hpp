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

/// While it lives, a write of this thread to a reader that has gone does not end the program.
class no_pipe_signal {
 public:
  no_pipe_signal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~no_pipe_signal() {
    if (sigismember(&before_, SIGPIPE) == 1) return;
    const timespec now{};
    while (sigtimedwait(&pipe_, nullptr, &now) == SIGPIPE) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  no_pipe_signal(const no_pipe_signal&) = delete;

 private:
  sigset_t pipe_, before_;
};

}  // namespace grosr::sys
