#include "kernels.hpp"
#include "operations.hpp"
#include "works.hpp"

namespace grosr::composition {
namespace {

struct find_keys {
  const float* records;
  float* keys;
  std::uint32_t count, groups;

  GROSR_DEVICE void operator()() const {
    each(count,
         [&](std::uint32_t i) { keys[i] = static_cast<float>(group_key(records[i], groups)); });
  }
};

/// A block takes a tile, and a thread a group at a time: n is first(cell), f(i, n) is called and n
/// counted up for each record i of the group, in order, and last(cell, n) ends the group.
struct tile_of_keys {
  const float* keys;
  std::uint32_t groups;

  template <class First, class F, class Last>
  GROSR_DEVICE void each_of_groups(const First& first, const F& f, const Last& last) const {
    const std::uint32_t tile = simt::block_id();
    for (std::uint32_t g = simt::thread_id(); g < groups; g += simt::block_size()) {
      const std::uint32_t cell = g * simt::grid_size() + tile;
      std::uint32_t n = first(cell);
      const auto key = static_cast<float>(g);
      for (std::uint32_t i = tile * group_tile; i < (tile + 1) * group_tile; ++i)
        if (keys[i] == key) f(i, n++);
      last(cell, n);
    }
  }
};

struct count_keys : tile_of_keys {
  float* counts;

  GROSR_DEVICE void operator()() const {
    each_of_groups(
        [](std::uint32_t) { return 0u; }, [](std::uint32_t, std::uint32_t) {},
        [&](std::uint32_t cell, std::uint32_t n) { counts[cell] = static_cast<float>(n); });
  }
};

struct scatter : tile_of_keys {
  const float* records;
  const float* place;
  float* grouped;

  GROSR_DEVICE void operator()() const {
    each_of_groups([&](std::uint32_t cell) { return static_cast<std::uint32_t>(place[cell]); },
                   [&](std::uint32_t i, std::uint32_t to) { grouped[to] = records[i]; },
                   [](std::uint32_t, std::uint32_t) {});
  }
};

/// The sum of each row, by a warp. A row is `width` elements; or it begins and is as long as said.
struct sum_rows {
  const float* elements;
  const float* starts;
  const float* sizes;
  float* result;
  std::uint32_t rows, width;

  GROSR_DEVICE void operator()() const {
    each_by_warp(rows, [&](std::uint32_t row) {
      const std::uint32_t begin = starts ? static_cast<std::uint32_t>(starts[row]) : row * width;
      const std::uint32_t size = sizes ? static_cast<std::uint32_t>(sizes[row]) : width;
      float sum = 0;
      for (std::uint32_t i = simt::lane_id(); i < size; i += simt::warp_size)
        sum += elements[begin + i];
      sum = warp::sum_of_lanes(sum);
      if (simt::lane_id() == 0) result[row] = sum;
    });
  }
};

/// The sums of the elements before each one in its row, from where the row starts, by a warp a row.
struct scan_rows {
  const float* elements;
  const float* starts;
  float* result;
  std::uint32_t rows, width;

  GROSR_DEVICE void operator()() const {
    each_by_warp(rows, [&](std::uint32_t row) {
      float before = starts ? starts[row] : 0;
      for (std::uint32_t first = 0; first < width; first += simt::warp_size) {
        const std::uint32_t i = first + simt::lane_id();
        const float mine = i < width ? elements[row * width + i] : 0;
        const float sum = warp::sum_up_to_lane(mine);
        if (i < width) result[row * width + i] = before + sum - mine;
        before += warp::of_last_lane(sum);
      }
    });
  }
};

}  // namespace

void launch_group_step(simt::stream& s, const step& what, const places& at) {
  const auto& [a, b, c] = at.reads;
  float* result = at.results[0];
  const auto [count, second, unused] = what.parameters;
  const simt::shape by_tile{count / group_tile, block_threads};
  switch (what.what) {
    case operation::group_key:
      return simt::launch<block_threads>(s, threads_for(count),
                                         find_keys{a, result, count, second});
    case operation::group_count:
      return simt::launch<block_threads>(s, by_tile, count_keys{{a, second}, result});
    case operation::group_size:
      return simt::launch<block_threads>(s, warps_for(count),
                                         sum_rows{a, nullptr, nullptr, result, count, second});
    case operation::group_start:
      return simt::launch<block_threads>(s, warps_for(1), scan_rows{a, nullptr, result, 1, count});
    case operation::group_place:
      return simt::launch<block_threads>(s, warps_for(count),
                                         scan_rows{a, b, result, count, second});
    case operation::group_scatter:
      return simt::launch<block_threads>(s, by_tile, scatter{{b, second}, a, c, result});
    default:
      return simt::launch<block_threads>(s, warps_for(count), sum_rows{a, b, c, result, count, 0});
  }
}

}  // namespace grosr::composition
