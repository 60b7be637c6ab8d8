// Unbalanced tree search (Olivier et al., LCPC 2006): counts the nodes of a tree whose shape its
// random numbers decide. Trees and counts are those of the benchmark, with its SHA-1 numbers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "recursion/await.hpp"
#include "recursion/uts_count.hpp"

namespace grosr::recursion {

struct uts_tree {
  enum class kind { geometric, binomial };
  kind shape = kind::geometric;
  double branch = 4;         ///< geometric: a node's mean number of children; else the root's
  std::uint32_t depth = 10;  ///< geometric: nodes there have no children
  double q = 0;              ///< binomial: the share of nodes with children
  std::uint32_t m = 0;       ///< binomial: how many those have
  std::uint32_t seed = 0;

  bool operator==(const uts_tree&) const = default;
  /// In the options of the benchmark: "-t 1 -a 3 -d 10 -b 4 -r 19".
  std::string text() const;
  /// Throws tool::usage_error if there is no such tree, or it would not end.
  void check() const;
};

inline constexpr std::uint32_t uts_most_depth = 65'535;

/// A tree that the benchmark's authors published, and what they count.
struct uts_published {
  std::string_view name;
  uts_tree tree;
  std::uint64_t nodes, leaves;  ///< leaves: 0 where not published
  std::uint32_t depth;
};
std::span<const uts_published> uts_trees();

/// Owns a runtime, which stays between runs. Not thread-safe.
class uts {
 public:
  explicit uts(const device& d, const runtime_options& o = {});
  ~uts();
  uts(const uts&) = delete;

  /// Throws grosr::error, also when a binomial tree gets deeper than uts_most_depth.
  uts_count run(const uts_tree& tree, const progress_callback& between = {});
  /// When all has come to rest: nothing lags.
  runtime_stats stats();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The same on one CPU thread, with a SHA-1 and formulas of its own.
uts_count uts_on_host(const uts_tree& tree);

/// How many children a node of a tree has by its random number, 31 bits; by the formulas. The root
/// of a binomial tree has tree.branch.
std::uint32_t uts_children_by_formula(const uts_tree& tree, std::uint32_t random);

}  // namespace grosr::recursion
