// The fuzzer of system calls: see syscalls_fuzz.cpp.
#pragma once

#include "measure/session.hpp"

namespace grosr::tool {

void fuzz_syscalls(session& s);

}  // namespace grosr::tool
