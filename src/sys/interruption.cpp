#include "sys/interruption.hpp"

#include <signal.h>

namespace grosr::sys {
namespace {

void do_nothing(int) {}

int take_signal() {
  for (int s = SIGRTMAX; s >= SIGRTMIN; --s) {
    struct sigaction found {};
    if (::sigaction(s, nullptr, &found) != 0 || found.sa_handler != SIG_DFL) continue;
    struct sigaction own {};
    own.sa_handler = do_nothing;
    own.sa_flags = SA_ONSTACK;  // and not SA_RESTART: the call is to end
    sigemptyset(&own.sa_mask);
    if (::sigaction(s, &own, nullptr) == 0) return s;
  }
  return 0;
}

}  // namespace

int interruption_signal() {
  static const int taken = take_signal();
  return taken;
}

void allow_interruption() {
  if (interruption_signal() == 0) return;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, interruption_signal());
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

void interrupt(pthread_t thread) {
  if (const int s = interruption_signal(); s != 0) pthread_kill(thread, s);
}

}  // namespace grosr::sys
