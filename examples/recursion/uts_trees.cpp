#include <fmt/format.h>

#include <algorithm>

#include <array>

#include "cli/errors.hpp"
#include "recursion/uts.hpp"

namespace grosr::recursion {

// From the benchmark's sample trees.
std::span<const uts_published> uts_trees() {
  using enum uts_tree::kind;
  static constexpr std::array trees{
      uts_published{"T1", {geometric, 4, 10, 0, 0, 19}, 4'130'071, 3'305'118, 10},
      uts_published{"T1L", {geometric, 4, 13, 0, 0, 29}, 102'181'082, 81'746'377, 13},
      uts_published{"T1XL", {geometric, 4, 15, 0, 0, 29}, 1'635'119'272, 1'308'100'063, 15},
      uts_published{"T1XXL", {geometric, 4, 15, 0, 0, 19}, 4'230'646'601, 0, 15},
      uts_published{"T3", {binomial, 2000, 0, 0.124875, 8, 42}, 4'112'897, 3'599'034, 1572},
      uts_published{"T3L", {binomial, 2000, 0, 0.200014, 5, 7}, 111'345'631, 89'076'904, 17'844}};
  return trees;
}

std::string uts_tree::text() const {
  return shape == kind::geometric ? fmt::format("-t 1 -a 3 -d {} -b {} -r {}", depth, branch, seed)
                                  : fmt::format("-t 0 -b {} -q {} -m {} -r {}", branch, q, m, seed);
}

void uts_tree::check() const {
  if (shape == kind::geometric) {
    if (!(branch > 0 && branch <= 1000) || depth > uts_most_depth)
      throw tool::usage_error(fmt::format(
          "{}: there is no such geometric tree; give -b above 0, at most 1000, and -d up to {}",
          text(), uts_most_depth));
    return;
  }
  if (!(branch >= 0 && branch <= 65'535) || branch != static_cast<std::uint32_t>(branch) ||
      !(q >= 0 && q <= 1) || m > uts_most_children)
    throw tool::usage_error(fmt::format(
        "{}: there is no such binomial tree; give a whole -b up to 65535, -q from 0 to 1 and -m up "
        "to {}",
        text(), uts_most_children));
  const auto is_this = [this](const uts_published& t) { return t.tree == *this; };
  if (q * m >= 1 && std::ranges::none_of(uts_trees(), is_this))  // of those it is known
    throw tool::usage_error(fmt::format(
        "{}: this tree need not end: a node has {} children in the mean; choose -q and -m so that "
        "q m is below 1",
        text(), q * m));
}

}  // namespace grosr::recursion
