// What a host lane does, in words: for reports of faults (faults.hpp) and of waits.
#pragma once

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

}  // namespace grosr::simt
