// --source: the vertex that a search begins at.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "grosr/graph/io/input.hpp"

namespace grosr::tool {

class source_option {
 public:
  void add_to(CLI::App& command);
  /// Throws usage_error: it is no number.
  void read();
  /// That vertex, counted from 0; without the option, the first that an edge leaves. Throws
  /// usage_error: the graph has no such vertex.
  graphs::vertex choose(const graphs::loaded& input) const;

 private:
  std::optional<std::string> asked_;
  std::uint64_t source_ = 0;  // as the input counts
};

}  // namespace grosr::tool
