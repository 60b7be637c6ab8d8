#include <fmt/format.h>

#include "works.hpp"

namespace grosr::composition {
namespace {

arrays compute(const std::vector<float>& records, std::uint32_t groups) {
  arrays by_key(groups), outputs(3);
  for (const float r : records) by_key[group_key(r, groups)].push_back(r);
  for (const std::vector<float>& group : by_key) {
    outputs[0].push_back(static_cast<float>(group.size()));
    outputs[1].insert(outputs[1].end(), group.begin(), group.end());
    double sum = 0;
    for (const float r : group) sum += r;
    outputs[2].push_back(static_cast<float>(sum));
  }
  return outputs;
}

}  // namespace

work group_by(std::uint32_t records, std::uint32_t groups) {
  work w;
  w.name = fmt::format("group-by, {} records, {} groups", records, groups);
  const std::uint32_t tiles = records / group_tile;
  const std::size_t cells = std::size_t{groups} * tiles;
  const unsigned record = w.add_input(records);
  const unsigned key =
      w.add_step(operation::group_key, {records, groups}, {record}, {std::size_t{records}});
  const unsigned count = w.add_step(operation::group_count, {records, groups}, {key}, {cells});
  const unsigned size = w.add_step(operation::group_size, {groups, tiles}, {count}, {groups});
  const unsigned start = w.add_step(operation::group_start, {groups}, {size}, {groups});
  const unsigned place =
      w.add_step(operation::group_place, {groups, tiles}, {count, start}, {cells});
  const unsigned grouped =
      w.add_step(operation::group_scatter, {records, groups}, {record, key, place}, {records});
  const unsigned sum = w.add_step(operation::group_sum, {groups}, {grouped, start, size}, {groups});
  w.outputs = {size, grouped, sum};
  w.plainly = [groups](const arrays& inputs) { return compute(inputs[0], groups); };
  return w;
}

}  // namespace grosr::composition
