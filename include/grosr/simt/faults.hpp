// Telling what faulted on the host backend.
#pragma once

#include <memory>

namespace grosr::simt {

/// While what it returns lives, a fault of a host lane (SIGSEGV, SIGBUS, SIGFPE, SIGILL) is told in
/// one line on standard error: what the lane did, and at which address. Then the program's own
/// handler of the signal runs; without one the program ends by the signal, as it would have. Only
/// in launches that begin meanwhile. Thread-safe.
std::shared_ptr<void> tell_faults();

}  // namespace grosr::simt
