#include "simt/environment.hpp"

#include <fmt/format.h>

#include <cctype>
#include <cerrno>
#include <cstdlib>

#include "grosr/simt/error.hpp"

namespace grosr::simt {

std::optional<std::uint64_t> from_environment(const setting& s) {
  const char* text = std::getenv(s.name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* rest = nullptr;
  errno = 0;
  const std::uint64_t value = std::strtoull(text, &rest, 0);
  const bool number = std::isdigit(static_cast<unsigned char>(*text)) != 0 && *rest == '\0';
  if (!number || errno != 0 || value < s.least || value > s.most)
    throw error(errc::invalid_option,
                fmt::format("{} is '{}'; set it to a number from {} to {}, or not at all", s.name,
                            text, s.least, s.most));
  return value;
}

void check_environment() {
  for (const setting& s : {host_workers, host_devices, host_stack, seed_of_schedules})
    from_environment(s);
}

}  // namespace grosr::simt
