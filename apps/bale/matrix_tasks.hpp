// Tasks of the programs on matrices: transposition, topological sort and triangles.
#pragma once

#include "tasks.hpp"

namespace grosr::bale {

// ---- transposition ----

struct transpose_arrays {
  matrix_on_ranks from;
  /// Of rows of the transpose: first how many nonzeros they have, then where the next one goes on
  /// their rank, so in the end where they end.
  net::array_ref<std::uint32_t> next;
  net::array_ref<std::uint32_t> columns;  ///< nonzeros of the transpose, of each rank in a block
  net::array_ref<std::uint32_t> sums;     ///< of each rank: nonzeros in pieces of its rows
};

/// On the rank of a row of the transpose: a nonzero takes its place.
struct place_nonzero {
  std::uint32_t row, column;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    take_place(world, arrays_of<transpose_arrays>(world));
  }
  GROSR_DEVICE void take_place(const auto& world, const transpose_arrays& a) const {
    world.local(a.columns)[shared(world.local(a.next)[row]).fetch_add(1, simt::relaxed)] = column;
  }
};

/// Goes over nonzeros of the matrix: counts those of each column, or sends them there.
struct transpose_nonzeros {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  bool counts;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<transpose_arrays>(world);
    const std::uint32_t* const columns = world.local(a.from.columns);
    const std::uint32_t* const sources = world.local(a.from.sources);
    const auto next = a.next;
    some.each(context, a.from.nonzeros_here(world), [&](std::uint32_t e) {
      if (counts) return world.add(next, columns[e], 1);
      const net::place to = next.find(columns[e]);
      const place_nonzero message{static_cast<std::uint32_t>(to.offset),
                                  number_of(world, a.from, sources[e])};
      if (to.rank == world.rank())
        message.take_place(world, a);
      else
        world.send(to.rank, message);
    });
  }
};

// ---- topological sort ----

/// Rows are removed, from the last one of the sorted matrix to the first, when they have one
/// nonzero left; and with them the column of that.
struct sort_arrays {
  matrix_on_ranks rows, columns;  ///< the matrix and its transpose
  /// What is left of each row: how many nonzeros, in the upper 20 bits; the sum of their columns.
  net::array_ref<std::uint64_t> left;
  net::array_ref<std::uint32_t> levels;     ///< of each row: rows of lower levels are removed first
  net::array_ref<std::uint32_t> of_levels;  ///< of each rank: rows of each level; their next place
  net::array_ref<std::uint32_t> highest;    ///< of each rank: a level
  /// Of rows: the column that was removed with it; then where it goes. Of columns: where it goes.
  net::array_ref<std::uint32_t> row_places, column_places;
};
inline constexpr unsigned left_shift = 44;
inline constexpr std::uint32_t not_removed = ~std::uint32_t{0};

/// On the rank of a column, of this rank's number: the rows that have a nonzero there lose it, but
/// for the one that was removed.
struct remove_column {
  std::uint32_t column, row, level;
  GROSR_DEVICE void operator()(auto& context) const;
  /// Removes a row of this rank.
  GROSR_DEVICE static void of_row(const auto& world, const sort_arrays& a, std::uint32_t row,
                                  std::uint32_t column) {
    const std::uint32_t level = shared(world.local(a.levels)[row]).load(simt::relaxed);
    world.local(a.row_places)[row] = column;
    shared(world.local(a.of_levels)[level]).fetch_add(1, simt::relaxed);
    raise(world.local(a.highest)[0], level);
    const net::place at = a.columns.rows.find(column);
    world.send(at.rank, remove_column{static_cast<std::uint32_t>(at.offset),
                                      number_of(world, a.rows, row), level + 1});
  }
  GROSR_DEVICE static void raise(std::uint32_t& word, std::uint32_t level) {
    if (shared(word).load(simt::relaxed) < level) shared(word).fetch_max(level, simt::relaxed);
  }
};

/// On the rank of a row, of this rank's number: it loses the nonzero of a column.
struct remove_nonzero {
  std::uint32_t row, column, level;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<sort_arrays>(world);
    remove_column::raise(world.local(a.levels)[row], level);
    const std::uint64_t nonzero = std::uint64_t{1} << left_shift | column;
    // C1: who leaves one sees the levels that all before have set.
    const std::uint64_t left =
        shared(world.local(a.left)[row]).fetch_sub(nonzero, simt::acq_rel) - nonzero;
    if (left >> left_shift == 1)
      remove_column::of_row(
          world, a, row, static_cast<std::uint32_t>(left & ((std::uint64_t{1} << left_shift) - 1)));
  }
};

GROSR_DEVICE void remove_column::operator()(auto& context) const {
  const auto world = net::world_of(context);
  const auto& a = arrays_of<sort_arrays>(world);
  const std::uint32_t* const offsets = world.local(a.columns.offsets);
  const std::uint32_t* const rows = world.local(a.columns.columns);
  const std::uint32_t number = number_of(world, a.columns, column);
  const std::uint32_t end = offsets[column + 1];
  GROSR_NO_UNROLL
  for (std::uint32_t e = offsets[column]; e < end; ++e) {
    simt::stay_together([&] {
      if (rows[e] == row) return;
      const net::place at = a.rows.rows.find(rows[e]);
      world.send(at.rank, remove_nonzero{static_cast<std::uint32_t>(at.offset), number, level});
    });
  }
}

enum class sort_step : std::uint32_t { begin, remove, place };

/// Goes over rows: adds up what they have; removes those of one nonzero; says where they go.
struct sort_rows {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  sort_step step;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<sort_arrays>(world);
    const std::uint32_t* const offsets = world.local(a.rows.offsets);
    const std::uint32_t* const columns = world.local(a.rows.columns);
    some.each(context, a.rows.rows_here(world), [&](std::uint32_t row) {
      if (step == sort_step::begin)
        add_up(world, a, row);
      else if (step == sort_step::place)
        place(world, a, row);
      else if (offsets[row + 1] - offsets[row] == 1)
        remove_column::of_row(world, a, row, columns[offsets[row]]);
    });
  }

 private:
  GROSR_DEVICE static void add_up(const auto& world, const sort_arrays& a, std::uint32_t row) {
    const std::uint32_t* const offsets = world.local(a.rows.offsets);
    const std::uint32_t* const columns = world.local(a.rows.columns);
    const std::uint32_t begin = offsets[row], end = offsets[row + 1];
    std::uint64_t left = std::uint64_t{end - begin} << left_shift;
    GROSR_NO_UNROLL
    for (std::uint32_t e = begin; e < end; ++e) left += columns[e];
    world.local(a.left)[row] = left;
    world.local(a.levels)[row] = 0;
    world.local(a.row_places)[row] = not_removed;
  }
  GROSR_DEVICE static void place(const auto& world, const sort_arrays& a, std::uint32_t row) {
    const std::uint32_t column = world.local(a.row_places)[row];
    if (column == not_removed) return;
    std::uint32_t& next = world.local(a.of_levels)[world.local(a.levels)[row]];
    const auto to =
        static_cast<std::uint32_t>(a.levels.size() - 1 - shared(next).fetch_add(1, simt::relaxed));
    world.local(a.row_places)[row] = to;
    world.put(a.column_places, column, to);
  }
};

// ---- triangles ----

struct triangle_arrays {
  matrix_on_ranks edges;                    ///< lower-triangular; rows in ascending order
  net::array_ref<std::uint64_t> triangles;  ///< of each rank: several sums
};
inline constexpr std::uint32_t triangle_sums = 64;

/// On the rank of a row, of this rank's number: which of these columns have a nonzero there. The
/// columns ascend.
struct check_columns {
  static constexpr std::uint32_t most = 5;
  std::uint32_t row;
  std::uint32_t columns[most];  // not there: ~0
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    check(world, arrays_of<triangle_arrays>(world));
  }
  GROSR_DEVICE void check(const auto& world, const triangle_arrays& a) const {
    const std::uint32_t* const offsets = world.local(a.edges.offsets);
    const std::uint32_t* const all = world.local(a.edges.columns);
    std::uint32_t at = offsets[row], found = 0;
    const std::uint32_t end = offsets[row + 1];
    GROSR_NO_UNROLL
    for (std::uint32_t i = 0; i < most && columns[i] != ~std::uint32_t{0}; ++i) {
      at = first_from(all, at, end, columns[i]);
      if (at == end) break;
      found += all[at] == columns[i] ? 1 : 0;
    }
    if (found != 0)
      shared(world.local(a.triangles)[row % triangle_sums])
          .fetch_add(std::uint64_t{found}, simt::relaxed);
  }

 private:
  /// The first place of a column that is not less.
  GROSR_DEVICE static std::uint32_t first_from(const std::uint32_t* all, std::uint32_t begin,
                                               std::uint32_t end, std::uint32_t column) {
    GROSR_NO_UNROLL
    while (begin != end) {
      const std::uint32_t middle = begin + (end - begin) / 2;
      if (all[middle] < column)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin;
  }
};

/// Goes over edges: sends what stands in the row before the column to the row of that number.
struct check_edges {
  static constexpr grosr::width width = grosr::width::warp;
  warp_share some;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const auto& a = arrays_of<triangle_arrays>(world);
    const std::uint32_t* const offsets = world.local(a.edges.offsets);
    const std::uint32_t* const columns = world.local(a.edges.columns);
    const std::uint32_t* const sources = world.local(a.edges.sources);
    const net::layout rows = a.edges.rows;
    some.each(context, a.edges.nonzeros_here(world), [&](std::uint32_t e) {
      const net::place to = rows.find(columns[e]);
      GROSR_NO_UNROLL
      for (std::uint32_t k = offsets[sources[e]]; k < e; k += check_columns::most) {
        check_columns message;
        message.row = static_cast<std::uint32_t>(to.offset);
        for (std::uint32_t i = 0; i < check_columns::most; ++i)
          message.columns[i] = k + i < e ? columns[k + i] : ~std::uint32_t{0};
        simt::stay_together([&] {
          if (to.rank == world.rank())
            message.check(world, a);
          else
            world.send(to.rank, message);
        });
      }
    });
  }
};

}  // namespace grosr::bale
