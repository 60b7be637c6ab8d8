// What a host lane does, in words: for reports of faults and of waits.
#pragma once

#include <memory>

#include "grosr/simt/detail/host_machine.hpp"

namespace grosr::simt {

/// While it lives, the calling lane does what `Name::text()` says, a string that lives for ever.
/// Nothing on a GPU.
template <class Name>
class doing {
 public:
  GROSR_DEVICE doing() {
#if !GROSR_ON_GPU
    before_ = host::set_doing(Name::text());
#endif
  }
  GROSR_DEVICE ~doing() {
#if !GROSR_ON_GPU
    host::set_doing(before_);
#endif
  }
  doing(const doing&) = delete;

 private:
  [[maybe_unused]] const char* before_ = nullptr;
};

/// While what it returns lives, a fault of a host lane (SIGSEGV, SIGBUS, SIGFPE, SIGILL) is told in
/// one line on standard error: what the lane did, and at which address. Then the program's own
/// handler of the signal runs; without one the program ends by the signal, as it would have. Only
/// in launches that begin meanwhile. Thread-safe.
std::shared_ptr<void> tell_faults();

}  // namespace grosr::simt
