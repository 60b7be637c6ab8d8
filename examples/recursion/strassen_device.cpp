#include <bit>
#include <memory>
#include <string>

#include "grosr/run/runtime.hpp"
#include "recursion/strassen.hpp"
#include "recursion/strassen_tasks.hpp"

namespace grosr::recursion {

struct strassen::state {
  runtime<strassen_product, joined, for_each_tile<multiply>, one_tile<multiply>,
          for_each_tile<add_quarters>, one_tile<add_quarters>, for_each_tile<add_products>,
          one_tile<add_products>>
      tasks;
  state(const device& d, const runtime_options& options) : tasks(d, options) {}
};

strassen::strassen(const device& d, const runtime_options& options)
    : state_(std::make_unique<state>(d, options)) {}
strassen::~strassen() = default;

bool strassen::fits(std::uint64_t n) {
  return n >= tile_side && n <= 32'768 && std::has_single_bit(n / tile_side) && n % tile_side == 0;
}

std::uint64_t strassen::arena_size(std::uint64_t n, std::uint64_t leaf) {
  return strassen_arena(n, leaf);
}

void strassen::run(const matrix& a, const matrix& b, const matrix& c, const matrix& arena,
                   std::uint32_t n, std::uint32_t leaf) {
  const auto refuse = [n](const std::string& why) {
    throw error(errc::invalid_option,
                "product of " + std::to_string(n) + " x " + std::to_string(n) + ": " + why);
  };
  if (!fits(n)) refuse("n must be 64 times a power of two, up to 32768");
  if (leaf < tile_side) refuse("a leaf of " + std::to_string(leaf) + " is below 64; choose more");
  const std::uint64_t cells = std::uint64_t{n} * n;
  if (a.size() < cells || b.size() < cells || c.size() < cells)
    refuse("a matrix holds less than " + std::to_string(cells) + " floats; make it as large");
  if (arena.size() < arena_size(n, leaf))
    refuse("the arena holds " + std::to_string(arena.size()) + " floats of " +
           std::to_string(arena_size(n, leaf)) + "; make it as large as arena_size() says");
  state_->tasks
      .fork(strassen_product{a.data(), b.data(), c.data(), arena.data(), n, n, n, n, leaf,
                             strassen_product::sums})
      .get();
}

runtime_stats strassen::stats() const { return state_->tasks.stats(); }

}  // namespace grosr::recursion
