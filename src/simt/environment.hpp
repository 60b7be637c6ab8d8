// Numbers that a user sets in the environment. docs/guide/checking.md says what they do.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

namespace grosr::simt {

struct setting {
  const char* name;
  std::uint64_t least, most;
};
inline constexpr setting host_workers{"GROSR_HOST_WORKERS", 1, 1u << 20};
inline constexpr setting host_devices{"GROSR_HOST_DEVICES", 1, 16};
inline constexpr setting host_stack{"GROSR_HOST_STACK", 16, 1u << 20};  // KiB
inline constexpr setting seed_of_schedules{"GROSR_SEED", 0,
                                           std::numeric_limits<std::uint64_t>::max()};

/// The setting's number: decimal, octal (0...) or hexadecimal (0x...); nothing where it is not set,
/// or empty. Throws error(invalid_option) when it is something else, or out of range.
std::optional<std::uint64_t> from_environment(const setting& s);

/// Throws as from_environment() when one of them is wrong: before threads find out that cannot say
/// so as well.
void check_environment();

}  // namespace grosr::simt
