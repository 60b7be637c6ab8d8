// Programs on matrices: transposition, topological sort and triangles.
#pragma once

#include "vectors.hpp"

namespace grosr::bale {

class transpose_on_ranks : public on_ranks {
 public:
  rows_on_ranks from;
  net::array<std::uint32_t> next, columns, sums;

  /// `room`: nonzeros of the transpose that a rank gets, at most.
  transpose_on_ranks(const problem& p, const matrix& m, std::uint64_t room)
      : on_ranks(p),
        from(world(), m),
        next(world(), m.rows(), net::distribution::cyclic),
        columns(world(), room * p.ranks),
        sums(world(), std::uint64_t{p.ranks} * pieces()) {
    set_arrays(transpose_arrays{from.ref(), next.ref(), columns.ref(), sums.ref()});
  }
  void clear() {
    fill_with_zeros(next);
    fill_with_zeros(columns);
  }
  void run() {
    go_over_nonzeros(true);
    add_up_pieces(summed::rows, false);
    words<std::uint32_t> all = elements_of(sums);
    for (std::uint32_t r = 0; r < ranks(); ++r)
      sum_before(all.data() + std::size_t{r} * pieces(), pieces());
    sums.copy_from(all);
    add_up_pieces(summed::rows, true);
    go_over_nonzeros(false);
  }
  /// Rows in ascending order.
  matrix result() const {
    const words<std::uint32_t> ends = elements_of(next), all = elements_of(columns);
    matrix m;
    for (std::uint32_t row = 0; row < ends.size(); ++row) {
      const std::uint64_t rank = row % ranks(),
                          first = columns.shape().index_of({static_cast<std::uint32_t>(rank), 0}),
                          begin = row < ranks() ? 0 : ends[row - ranks()];
      if (begin > ends[row] || first + ends[row] > all.size()) return {};
      m.columns.insert(m.columns.end(), all.begin() + first + begin,
                       all.begin() + first + ends[row]);
      std::sort(m.columns.begin() + m.offsets.back(), m.columns.end());
      m.end_row();
    }
    return m;
  }

 private:
  void go_over_nonzeros(bool counts) {
    share_out(from.nonzeros_each(), [&](warp_share s) { return transpose_nonzeros{s, counts}; });
  }
};

class transpose : public program_on<transpose_on_ranks> {
 public:
  explicit transpose(const problem& p) : p_(p), m_(random_matrix(p.size, p.nonzeros, p.seed)) {}
  void run_sequentially() override { expected_ = transpose_sequentially(m_); }
  void begin() override {
    words<std::uint64_t> of_rank(p_.ranks);
    for (const std::uint32_t c : m_.columns) ++of_rank[c % p_.ranks];
    put_on_ranks(p_, m_,
                 std::max<std::uint64_t>(*std::max_element(of_rank.begin(), of_rank.end()), 1));
  }
  std::string wrong() override {
    return at().result() == expected_ ? "" : "the matrix is not the transpose";
  }
  double operations() const override { return m_.nonzeros(); }

 private:
  problem p_;
  matrix m_, expected_;
};

class sort_on_ranks : public on_ranks {
 public:
  rows_on_ranks rows, columns;
  net::array<std::uint64_t> left;
  net::array<std::uint32_t> levels, of_levels, highest, row_places, column_places;

  sort_on_ranks(const problem& p, const matrix& m, const matrix& transposed)
      : on_ranks(p),
        rows(world(), m),
        columns(world(), transposed),
        left(world(), m.rows(), net::distribution::cyclic),
        levels(world(), m.rows(), net::distribution::cyclic),
        of_levels(world(), std::uint64_t{m.rows()} * p.ranks),
        highest(world(), p.ranks),
        row_places(world(), m.rows(), net::distribution::cyclic),
        column_places(world(), m.rows(), net::distribution::cyclic) {
    set_arrays(sort_arrays{rows.ref(), columns.ref(), left.ref(), levels.ref(), of_levels.ref(),
                           highest.ref(), row_places.ref(), column_places.ref()});
  }
  void clear() {
    fill_with_zeros(of_levels);
    fill_with_zeros(highest);
    fill_with_zeros(column_places);
  }
  void run() {
    go_over_rows(sort_step::begin);
    go_over_rows(sort_step::remove);
    number_levels();
    go_over_rows(sort_step::place);
  }
  sorted_matrix result() const { return {elements_of(row_places), elements_of(column_places)}; }

 private:
  void go_over_rows(sort_step step) {
    share_out(rows.rows_each(), [&](warp_share s) { return sort_rows{s, step}; });
  }
  /// Where the rows of each level and rank begin.
  void number_levels() {
    const words<std::uint32_t> all = elements_of(highest);
    const std::size_t count = std::size_t{1} + *std::max_element(all.begin(), all.end());
    std::vector<words<std::uint32_t>> of_rank(ranks(), words<std::uint32_t>(count));
    for (std::uint32_t r = 0; r < ranks(); ++r) of_levels.copy_part_to(r, of_rank[r]);
    std::uint32_t sum = 0;
    for (std::size_t level = 0; level < count; ++level)
      for (words<std::uint32_t>& of : of_rank) {
        const std::uint32_t n = of[level];
        of[level] = sum;
        sum += n;
      }
    for (std::uint32_t r = 0; r < ranks(); ++r) of_levels.copy_part_from(r, of_rank[r]);
  }
};

class topological_sort : public program_on<sort_on_ranks> {
 public:
  explicit topological_sort(const problem& p)
      : p_(p),
        m_(shuffled_triangular_matrix(p.size, p.nonzeros, p.seed)),
        columns_(transpose_sequentially(m_)) {}
  void run_sequentially() override { found_ = sort_sequentially(m_, columns_); }
  void begin() override { put_on_ranks(p_, m_, columns_); }
  std::string wrong() override {
    std::string what = wrong_order(m_, found_);
    if (!what.empty()) return "by one thread " + what;
    return wrong_order(m_, at().result());
  }
  double operations() const override { return m_.nonzeros(); }

 private:
  problem p_;
  matrix m_, columns_;
  sorted_matrix found_;
};

class triangles_on_ranks : public on_ranks {
 public:
  rows_on_ranks edges;
  net::array<std::uint64_t> triangles;

  triangles_on_ranks(const problem& p, const matrix& m)
      : on_ranks(p), edges(world(), m), triangles(world(), std::uint64_t{p.ranks} * triangle_sums) {
    set_arrays(triangle_arrays{edges.ref(), triangles.ref()});
  }
  void clear() { fill_with_zeros(triangles); }
  void run() {
    share_out(edges.nonzeros_each(), [](warp_share s) { return check_edges{s}; });
  }
};

class count_triangles : public program_on<triangles_on_ranks> {
 public:
  explicit count_triangles(const problem& p)
      : p_(p), m_(random_graph(p.size, p.seed)), wedges_(wedges_of(m_)) {}
  void run_sequentially() override { expected_ = count_triangles_sequentially(m_); }
  void begin() override { put_on_ranks(p_, m_); }
  std::string wrong() override {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : elements_of(at().triangles)) sum += n;
    return sum == expected_ ? "" : "triangles are not as many as a thread counts";
  }
  double operations() const override { return static_cast<double>(wedges_); }

 private:
  problem p_;
  matrix m_;
  std::uint64_t wedges_, expected_ = 0;
};

}  // namespace grosr::bale
