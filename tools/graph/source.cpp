#include "graph/source.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/errors.hpp"
#include "cli/text.hpp"

namespace grosr::tool {

void source_option::add_to(CLI::App& command) {
  command
      .add_option("--source", asked_,
                  "The vertex to begin at, as the input numbers them; by default the first that an "
                  "edge leaves")
      ->type_name("N");
}

void source_option::read() {
  if (asked_) source_ = parse_number("--source", *asked_, 0, ~std::uint32_t{0});
}

graphs::vertex source_option::choose(const graphs::loaded& input) const {
  const graphs::csr_graph& g = input.g;
  const std::uint64_t first = g.first, last = first + g.vertices() - 1;
  if (asked_ && (source_ < first || source_ > last))
    throw usage_error(fmt::format("--source is {}, but {} has vertices {} to {}; give one of these",
                                  source_, one_line(input.what), first, last));
  if (asked_) return static_cast<graphs::vertex>(source_ - first);
  const auto edge = std::upper_bound(g.row.begin(), g.row.end(), 0u);
  return edge == g.row.end() ? 0 : static_cast<graphs::vertex>(edge - g.row.begin() - 1);
}

}  // namespace grosr::tool
