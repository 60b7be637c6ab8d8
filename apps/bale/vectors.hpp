// Programs on vectors: histogram, index gather and permutation.
#pragma once

#include "on_ranks.hpp"
#include "sequential.hpp"

namespace grosr::bale {

/// A program with what it has on ranks, from begin() on.
template <class OnRanks>
class program_on : public program {
 public:
  void run() override { at().run(); }
  void clear() override { at().clear(); }
  std::vector<net::rank_stats> stats() const override { return on_ranks_->world().stats(); }

 protected:
  OnRanks& at() { return *on_ranks_; }
  template <class... Input>
  void put_on_ranks(const Input&... input) {
    on_ranks_ = std::make_unique<OnRanks>(input...);
  }

 private:
  std::unique_ptr<OnRanks> on_ranks_;
};

class histogram_on_ranks : public on_ranks {
 public:
  net::array<std::uint64_t> bins;
  net::array<std::uint32_t> numbers;

  histogram_on_ranks(const problem& p, const words<std::uint32_t>& all, std::uint32_t count)
      : on_ranks(p), bins(world(), count, net::distribution::cyclic), numbers(world(), all.size()) {
    numbers.copy_from(all);
    set_arrays(histogram_arrays{bins.ref(), numbers.ref()});
  }
  void clear() { fill_with_zeros(bins); }
  void run() {
    share_out(numbers.shape().size_of(0), [](warp_share s) { return count_numbers{s}; });
  }
};

class histogram : public program_on<histogram_on_ranks> {
 public:
  explicit histogram(const problem& p)
      : p_(p), bins_(p.size / 4 + 1), numbers_(random_numbers(p.size, bins_, p.seed)) {}
  void run_sequentially() override { expected_ = count_sequentially(numbers_, bins_); }
  void begin() override { put_on_ranks(p_, numbers_, bins_); }
  std::string wrong() override {
    return elements_of(at().bins) == expected_ ? "" : "bins are not what a thread counts";
  }
  double operations() const override { return p_.size; }

 private:
  problem p_;
  std::uint32_t bins_;
  words<std::uint32_t> numbers_;
  words<std::uint64_t> expected_;
};

class gather_on_ranks : public on_ranks {
 public:
  net::array<std::uint64_t> table;
  net::array<std::uint32_t> indices;
  net::array<std::uint64_t> values;

  gather_on_ranks(const problem& p, const words<std::uint64_t>& elements,
                  const words<std::uint32_t>& all)
      : on_ranks(p),
        table(world(), elements.size(), net::distribution::cyclic),
        indices(world(), all.size()),
        values(world(), all.size()) {
    table.copy_from(elements);
    indices.copy_from(all);
    set_arrays(gather_arrays{table.ref(), indices.ref(), values.ref()});
  }
  void clear() { fill_with_zeros(values); }
  void run() {
    share_out(indices.shape().size_of(0), [](warp_share s) { return gather_values{s}; });
  }
};

class index_gather : public program_on<gather_on_ranks> {
 public:
  explicit index_gather(const problem& p)
      : p_(p), table_(p.size / 4 + 1), indices_(random_numbers(p.size, p.size / 4 + 1, p.seed)) {
    for (std::size_t i = 0; i < table_.size(); ++i) table_[i] = (i + 1) * 0x9e3779b97f4a7c15u;
  }
  void run_sequentially() override { expected_ = gather_sequentially(table_, indices_); }
  void begin() override { put_on_ranks(p_, table_, indices_); }
  std::string wrong() override {
    return elements_of(at().values) == expected_ ? "" : "values are not those of the table";
  }
  double operations() const override { return p_.size; }

 private:
  problem p_;
  words<std::uint64_t> table_;
  words<std::uint32_t> indices_;
  words<std::uint64_t> expected_;
};

class permutation_on_ranks : public on_ranks {
 public:
  net::array<std::uint32_t> table, order, sums;

  explicit permutation_on_ranks(const problem& p)
      : on_ranks(p),
        table(world(), std::uint64_t{p.size} * 2, net::distribution::cyclic),
        order(world(), p.size),
        sums(world(), std::uint64_t{p.ranks} * pieces()) {
    set_arrays(permutation_arrays{table.ref(), order.ref(), sums.ref(), p.seed});
  }
  void clear() {
    fill_with_zeros(table);
    fill_with_zeros(order);
  }
  void run() {
    share_out(order.shape().size_of(0), [](warp_share s) { return throw_darts{s}; });
    add_up_pieces(summed::darts, false);
    words<std::uint32_t> all = elements_of(sums);
    sum_before(all.data(), all.size());
    sums.copy_from(all);
    add_up_pieces(summed::darts, true);
  }
};

class permutation : public program_on<permutation_on_ranks> {
 public:
  explicit permutation(const problem& p) : p_(p) {}
  void run_sequentially() override { expected_ = random_order(p_.size, p_.seed); }
  void begin() override { put_on_ranks(p_); }
  std::string wrong() override {
    return is_permutation(elements_of(at().order)) ? "" : "a dart is missing, or is there twice";
  }
  double operations() const override { return p_.size; }

 private:
  problem p_;
  words<std::uint32_t> expected_;
};

}  // namespace grosr::bale
