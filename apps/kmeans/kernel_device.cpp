// By kernels of the whole device, without ranks: the limit.
#include "blocks.hpp"
#include "grosr/simt/global_ref.hpp"
#include "kernels.hpp"

namespace grosr::kmeans {
namespace {

struct assign_points {
  share points;
  const std::int32_t* centroids;
  std::uint64_t* sums;
  GROSR_DEVICE void operator()() const {
    const std::uint64_t step = std::uint64_t{simt::grid_size()} * simt::block_size();
    GROSR_NO_UNROLL
    for (std::uint64_t i = std::uint64_t{simt::block_id()} * simt::block_size() + simt::thread_id();
         i < points.points; i += step) {
      std::uint64_t* const to = sums + points.size.offset_of(points.nearest(i, centroids));
      for (std::uint32_t j = 0; j < points.size.width(); ++j)
        simt::global_ref<std::uint64_t>(to[j]).store_add(points.addend(i, j), simt::relaxed);
    }
  }
};

class kernels : public way {
 public:
  explicit kernels(const problem& p)
      : p_(p),
        size_{p.points->dimensions, p.clusters, 1},
        points_(p, size_),
        sums_(p.where, simt::space::device, size_.part()),
        centroids_(p.where, simt::space::device, size_.all()),
        stream_(p.where) {}

  void begin(const centroid_list& first) override { centroids_.copy_from(first); }

  void iterate() override {
    for (std::uint32_t i = 0; i < p_.iterations; ++i) {
      simt::launch(stream_, grid_of(p_.where, 0),
                   assign_points{points_.of(0), centroids_.data(), sums_.data()});
      simt::launch(stream_, renew_grid, renew_centroids{size_, 0, sums_.data(), centroids_.data()});
    }
    stream_.wait();
  }

  std::vector<centroid_list> centroids() override {
    centroid_list all(size_.all());
    centroids_.copy_to(all);
    return {all};
  }

 private:
  problem p_;
  sizes size_;
  point_blocks points_;
  simt::buffer<std::uint64_t> sums_;
  simt::buffer<std::int32_t> centroids_;
  simt::stream stream_;
};

}  // namespace

std::unique_ptr<way> by_kernel(const problem& p) { return std::make_unique<kernels>(p); }

}  // namespace grosr::kmeans
