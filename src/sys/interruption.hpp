// How a system call of one of the server's threads is ended while it waits.
#pragma once

#include <pthread.h>

namespace grosr::sys {

/// The signal for it: of the real-time signals the highest for which the program had no handler
/// when this was first called. From then on it has one, which does nothing, and calls that it
/// interrupts end with -EINTR. 0: the program has handlers for all of them.
int interruption_signal();

/// The calling thread lets its calls be interrupted from now on.
void allow_interruption();

/// Interrupts the call that `thread` is in. One that it is about to begin is not: who has to be
/// sure calls again until the thread is out of it.
void interrupt(pthread_t thread);

}  // namespace grosr::sys
