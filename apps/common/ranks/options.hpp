// Options that say where the ranks of a program lie.
#pragma once

#include <optional>
#include <string>

#include "cli/program.hpp"
#include "cli/text.hpp"
#include "ranks/placement.hpp"

namespace grosr::ranks {

/// A whole number from `least` to `most`, if one was asked for. Throws as tool::parse_number().
template <class T = std::uint64_t>
T number_or(const char* what, const std::optional<std::string>& asked, std::uint64_t otherwise,
            std::uint64_t least, std::uint64_t most) {
  return static_cast<T>(asked ? tool::parse_number(what, *asked, least, most) : otherwise);
}

class options {
 public:
  std::optional<std::string> device;

  void add_device(CLI::App& program);
  void add_ranks(CLI::App& program);  ///< --ranks, --sms and --blocks
  void add_link(CLI::App& program);

  /// What was asked for. `ranks`: how many without --ranks; 0: as its text says.
  placement read(std::uint32_t ranks = 0) const;

 private:
  std::optional<std::string> ranks_, sms_, blocks_, link_;
};

}  // namespace grosr::ranks
