// Sums of elements before each element of a rank's list, in pieces: what the programs number by.
#pragma once

#include "matrix_tasks.hpp"
#include "vector_tasks.hpp"

namespace grosr::bale {

enum class summed : std::uint32_t { darts, rows };

/// A piece of a rank's part of the darts' table, or of the rows of a transpose. First its sum goes
/// to the array of sums. The host makes of that the sum of all pieces before, and then darts are
/// put in order, and rows get their places.
struct add_up_piece {
  static constexpr grosr::width width = grosr::width::warp;
  piece some;
  summed what;
  bool last;  ///< the second time
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    if (what == summed::darts)
      add_up_darts(world, arrays_of<permutation_arrays>(world));
    else
      add_up_rows(world, arrays_of<transpose_arrays>(world));
  }

 private:
  GROSR_DEVICE void add_up_darts(const auto& world, const permutation_arrays& a) const {
    const std::uint32_t* const table = world.local(a.table);
    add_up(
        world, a.table.size_of(world.rank()), a.sums,
        [&](std::uint64_t i) { return table[i] != 0 ? 1u : 0u; },
        [&](std::uint64_t i, std::uint32_t before) {
          if (table[i] != 0) world.put(a.order, before, table[i] - 1);
        });
  }
  GROSR_DEVICE void add_up_rows(const auto& world, const transpose_arrays& a) const {
    std::uint32_t* const next = world.local(a.next);
    add_up(
        world, a.next.size_of(world.rank()), a.sums, [&](std::uint64_t i) { return next[i]; },
        [&](std::uint64_t i, std::uint32_t before) { next[i] = before; });
  }
  GROSR_DEVICE void add_up(const auto& world, std::uint64_t count,
                           net::array_ref<std::uint32_t> sums, const auto& element,
                           const auto& visit) const {
    std::uint32_t& sum = world.local(sums)[some.number];
    const std::uint32_t all =
        some.add_up(count, last ? sum : 0, element, [&](std::uint64_t i, std::uint32_t before) {
          if (last) visit(i, before);
        });
    if (!last && simt::lane_id() == 0) sum = all;
  }
};

}  // namespace grosr::bale
