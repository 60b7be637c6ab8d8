// By tasks of a world: lanes add to sums on other ranks where they stand.
#include <algorithm>

#include "blocks.hpp"
#include "grosr/net/world.hpp"

namespace grosr::kmeans {
namespace {

/// Points of a warp go to the sums of the nearest cluster.
struct assign {
  net::array_ref<std::uint64_t> sums;
  net::array_ref<std::int32_t> centroids;
  const share* points;
  std::uint32_t first, count;
  static constexpr grosr::width width = grosr::width::warp;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = net::world_of(context);
    const share mine = *points;
    GROSR_NO_UNROLL
    for (std::uint64_t i = first + context.rank(); i < first + count; i += simt::warp_size) {
      const std::uint32_t c = mine.nearest(i, world.local(centroids)),
                          at = mine.size.rank_of(c) * mine.size.part() + mine.size.offset_of(c);
      GROSR_NO_UNROLL
      for (std::uint32_t j = 0; j < mine.size.width(); ++j)
        world.add(sums, at + j, mine.addend(i, j));
    }
  }
};

/// A rank gives the new centroid of one of its clusters to all ranks.
struct renew {
  net::array_ref<std::uint64_t> sums;
  net::array_ref<std::int32_t> centroids;
  sizes size;
  std::uint32_t cluster;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = net::world_of(context);
    std::uint64_t* const mine = world.local(sums) + size.offset_of(cluster);
    const std::int32_t* const before = world.local(centroids) + cluster * size.width();
    GROSR_NO_UNROLL
    for (std::uint32_t j = 0; j < size.width(); ++j) {
      const std::int32_t value = renewed(mine, size, j, before[j]);
      GROSR_NO_UNROLL
      for (std::uint32_t r = 0; r < size.ranks; ++r)
        world.put(centroids, r * size.all() + cluster * size.width() + j, value);
    }
    for (std::uint32_t j = 0; j < size.width(); ++j) mine[j] = 0;
  }
};

class tasks_of_ranks : public way {
 public:
  tasks_of_ranks(const problem& p, net::path path)
      : p_(p),
        points_(p, p.size()),
        shares_(p.where, simt::space::device, p.ranks),
        world_(place_shares(), {.link_bytes = p.link_bytes, .path = path}),
        sums_(world_, std::uint64_t{p.ranks} * p.size().part()),
        centroids_(world_, std::uint64_t{p.ranks} * p.size().all()) {
    for (std::uint32_t r = 0; r < p.ranks; ++r) plan_assignments(r);
  }

  void begin(const centroid_list& first) override {
    for (std::uint32_t r = 0; r < p_.ranks; ++r) centroids_.copy_part_from(r, first);
  }

  void iterate() override {
    for (std::uint32_t i = 0; i < p_.iterations; ++i) {
      for (std::uint32_t r = 0; r < p_.ranks; ++r) world_.submit(r, assignments_[r]);
      world_.wait_all();
      for (std::uint32_t c = 0; c < p_.clusters; ++c)
        world_.submit(p_.size().rank_of(c), renew{sums_.ref(), centroids_.ref(), p_.size(), c});
      world_.wait_all();
    }
  }

  std::vector<centroid_list> centroids() override {
    std::vector<centroid_list> all(p_.ranks, centroid_list(p_.size().all()));
    for (std::uint32_t r = 0; r < p_.ranks; ++r) centroids_.copy_part_to(r, all[r]);
    return all;
  }

  std::vector<net::rank_stats> stats() override { return world_.stats(); }

 private:
  /// Before the world begins: what lies on a device is best allocated while no kernel is there.
  std::vector<net::rank_options> place_shares() {
    std::vector<share> shares;
    for (std::uint32_t r = 0; r < p_.ranks; ++r) shares.push_back(points_.of(r));
    shares_.copy_from(shares);
    return ranks::ranks_of(p_, std::size_t{64} << 20);
  }

  void plan_assignments(std::uint32_t rank) {
    const auto points = static_cast<std::uint32_t>(points_.of(rank).points);
    std::vector<assign>& all = assignments_.emplace_back();
    for (std::uint32_t first = 0; first < points; first += p_.per_task)
      all.push_back({sums_.ref(), centroids_.ref(), shares_.data() + rank, first,
                     std::min(p_.per_task, points - first)});
  }

  problem p_;
  point_blocks points_;
  simt::buffer<share> shares_;
  net::world<assign, renew> world_;
  net::array<std::uint64_t> sums_;
  net::array<std::int32_t> centroids_;
  std::vector<std::vector<assign>> assignments_;
};

}  // namespace

std::unique_ptr<way> by_tasks(const problem& p, net::path path) {
  return std::make_unique<tasks_of_ranks>(p, path);
}

}  // namespace grosr::kmeans
