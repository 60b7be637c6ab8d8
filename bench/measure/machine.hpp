// What a record says of the machine that it was made on, and of the processors' time and memory it
// took.
#pragma once

#include <cstdint>
#include <string>

namespace grosr::tool {

/// "AMD EPYC 9654 96-Core Processor"; "unknown" where Linux does not say.
std::string cpu_model();
/// "Debian GNU/Linux 12 (bookworm)".
std::string system_name();
/// "Linux 6.1.0-18-amd64".
std::string kernel_version();

/// Resident memory of this process.
std::uint64_t resident_bytes();

/// Seconds that the threads of this process have run so far, together.
double cpu_seconds();

}  // namespace grosr::tool
