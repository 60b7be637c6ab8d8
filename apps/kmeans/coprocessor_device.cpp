// By kernels that cannot send: they fill buffers, which the host exchanges between ranks.
#include "blocks.hpp"
#include "coprocessor/exchange.hpp"
#include "kernels.hpp"

namespace grosr::kmeans {
namespace {

/// The points of a rank, as items of an exchange: each adds its numbers to those of its cluster.
struct assign_block {
  share points;
  const std::int32_t* centroids;

  static constexpr std::uint32_t unknown = UINT32_MAX;
  struct position {
    std::uint64_t point;
    std::uint32_t cluster;  ///< of that point, once it was looked at
  };
  GROSR_DEVICE position begin(std::uint32_t thread, std::uint32_t) const {
    return {thread, unknown};
  }
  GROSR_DEVICE bool ended(const position& at) const { return at.point >= points.points; }
  GROSR_DEVICE std::uint32_t look(position& at) const {
    if (at.cluster == unknown) at.cluster = points.nearest(at.point, centroids);
    return points.size.rank_of(at.cluster);
  }
  GROSR_DEVICE coprocessor::update get(const position& at, std::uint32_t j) const {
    return {points.size.offset_of(at.cluster) + j, points.addend(at.point, j)};
  }
  GROSR_DEVICE void advance(position& at, std::uint32_t threads) const {
    at = {at.point + threads, unknown};
  }
};

class exchanged_buffers : public way {
 public:
  exchanged_buffers(const problem& p, std::size_t buffer_bytes)
      : p_(p),
        size_(p.size()),
        points_(p, size_),
        sums_(p.where, simt::space::device, std::size_t{p.ranks} * size_.part()),
        centroids_(p.where, simt::space::device, size_.all()),
        exchanger_(p.where, p.ranks, grid_of(p.where, p.sms), size_.width(), buffer_bytes) {
    for (std::uint32_t r = 0; r < p.ranks; ++r) {
      streams_.emplace_back(p.where);
      work_.push_back({{points_.of(r), centroids_.data()}, sums_of(r)});
    }
  }

  void begin(const centroid_list& first) override { centroids_.copy_from(first); }

  void iterate() override {
    for (std::uint32_t i = 0; i < p_.iterations; ++i) {
      exchanges_ += static_cast<double>(exchanger_.run(work_));
      for (std::uint32_t r = 0; r < p_.ranks; ++r)
        simt::launch(streams_[r], renew_grid,
                     renew_centroids{size_, r, sums_of(r), centroids_.data()});
      for (const simt::stream& s : streams_) s.wait();
      ++iterations_;
    }
  }

  std::vector<centroid_list> centroids() override {
    centroid_list all(size_.all());
    centroids_.copy_to(all);
    return {all};
  }

  double exchanges() override { return exchanges_ / iterations_; }

 private:
  std::uint64_t* sums_of(std::uint32_t rank) const {
    return sums_.data() + std::size_t{rank} * size_.part();
  }

  problem p_;
  sizes size_;
  point_blocks points_;
  simt::buffer<std::uint64_t> sums_;
  simt::buffer<std::int32_t> centroids_;  // one copy: all ranks lie on one device
  coprocessor::exchanger<assign_block> exchanger_;
  std::vector<simt::stream> streams_;
  std::vector<coprocessor::assignment<assign_block>> work_;
  double exchanges_ = 0, iterations_ = 0;
};

}  // namespace

std::unique_ptr<way> by_coprocessor(const problem& p, unsigned times) {
  return std::make_unique<exchanged_buffers>(p, p.buffer_bytes * times);
}

}  // namespace grosr::kmeans
