// What the programs of the host have in common: the world, and how work is handed to its ranks.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "matrix.hpp"
#include "programs.hpp"
#include "ranks/share_out.hpp"
#include "sum_tasks.hpp"

namespace grosr::bale {

// One type of world for all programs: each takes nvcc a minute.
using bale_world = net::world<count_numbers, look_up, gather_values, dart, throw_darts,
                              place_nonzero, transpose_nonzeros, remove_column, remove_nonzero,
                              sort_rows, check_columns, check_edges, add_up_piece>;

template <class T>
using words = std::vector<T>;

/// A world, whose ranks know the arrays of a program.
class on_ranks {
 public:
  explicit on_ranks(const problem& p)
      : p_(p),
        world_(ranks::ranks_of(p), {.link_bytes = p.link_bytes, .path = net::path::messages}),
        arrays_(world_, std::uint64_t{p.ranks} * words_of_arrays) {
    if (arrays_.ref().number() != number_of_arrays)
      throw std::logic_error("bale: the first array of a world has another number");
  }

  bale_world& world() { return world_; }
  const bale_world& world() const { return world_; }
  std::uint32_t ranks() const { return p_.ranks; }
  /// Pieces of a rank's list that warps add up.
  std::uint32_t pieces() const { return p_.where.is_cuda() ? 512 : 2; }

  /// Tells all ranks.
  template <class Arrays>
  void set_arrays(const Arrays& a) {
    words<std::uint64_t> mine(words_of_arrays);
    static_assert(sizeof a <= words_of_arrays * 8);
    __builtin_memcpy(mine.data(), &a, sizeof a);
    for (std::uint32_t r = 0; r < ranks(); ++r) arrays_.copy_part_from(r, mine);
  }

  /// Hands each rank make(share) for the shares of a list that is so long on a rank, and waits.
  template <class Make>
  void share_out(std::uint64_t of_a_rank, const Make& make) {
    ranks::share_out(world_, of_a_rank, p_.where.is_cuda() ? 16'384 / ranks() : 4, make);
  }
  /// The same for the pieces of each rank's list.
  void add_up_pieces(summed what, bool last) {
    ranks::on_all_ranks(world_, pieces(), [&](std::uint32_t i) {
      return add_up_piece{{i, pieces()}, what, last};
    });
  }

 private:
  problem p_;
  bale_world world_;
  net::array<std::uint64_t> arrays_;
};

template <class T>
void fill_with_zeros(net::array<T>& a) {
  a.copy_from(words<T>(a.size()));
}
template <class T>
words<T> elements_of(const net::array<T>& a) {
  words<T> all(a.size());
  a.copy_to(all);
  return all;
}
/// Makes of each number the sum of those before.
inline void sum_before(std::uint32_t* first, std::size_t count) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t n = first[i];
    first[i] = sum;
    sum += n;
  }
}

/// The rows of a matrix, which the ranks have in turn.
class rows_on_ranks {
 public:
  rows_on_ranks(bale_world& world, const matrix& m)
      : rows_(m.rows(), world.size(), net::distribution::cyclic),
        rows_each_(rows_.size_of(0)),
        nonzeros_each_(most_of_a_rank(m, world.size())),
        offsets_(world, world.size() * (rows_each_ + 1)),
        columns_(world, world.size() * nonzeros_each_),
        sources_(world, columns_.size()) {
    for (std::uint32_t r = 0; r < world.size(); ++r) copy_part(m, r);
  }
  matrix_on_ranks ref() const { return {rows_, offsets_.ref(), columns_.ref(), sources_.ref()}; }
  std::uint64_t rows_each() const { return rows_each_; }          ///< of a rank, at most
  std::uint64_t nonzeros_each() const { return nonzeros_each_; }  ///< the same, and not 0

 private:
  /// Calls visit(number here, number) for the rows of a rank.
  template <class Visit>
  void each_row(std::uint32_t rank, const Visit& visit) const {
    for (std::uint64_t i = 0; i < rows_.size_of(rank); ++i)
      visit(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(rows_.index_of({rank, i})));
  }
  std::uint64_t most_of_a_rank(const matrix& m, std::uint32_t ranks) const {
    std::uint64_t most = 1;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      std::uint64_t mine = 0;
      each_row(rank, [&](std::uint32_t, std::uint32_t row) {
        mine += m.offsets[row + 1] - m.offsets[row];
      });
      most = std::max(most, mine);
    }
    return most;
  }
  void copy_part(const matrix& m, std::uint32_t rank) {
    words<std::uint32_t> offsets{0}, columns, sources;
    each_row(rank, [&](std::uint32_t here, std::uint32_t row) {
      columns.insert(columns.end(), m.columns.begin() + m.offsets[row],
                     m.columns.begin() + m.offsets[row + 1]);
      sources.resize(columns.size(), here);
      offsets.push_back(static_cast<std::uint32_t>(columns.size()));
    });
    offsets_.copy_part_from(rank, offsets);
    columns_.copy_part_from(rank, columns);
    sources_.copy_part_from(rank, sources);
  }

  net::layout rows_;
  std::uint64_t rows_each_, nonzeros_each_;
  net::array<std::uint32_t> offsets_, columns_, sources_;
};

}  // namespace grosr::bale
