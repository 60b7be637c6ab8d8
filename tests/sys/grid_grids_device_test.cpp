// The grid of calls, for grids in both orders.
#include "sys/grid.hpp"

namespace grosr::sys::grid {
namespace {

GROSR_DEVICE_SUITE(grid_of_grids);

TEST_P(grid_of_grids, producing_grids_call_once) {
  expect_cells<by::grid_producer>(where(), false);
}
TEST_P(grid_of_grids, producing_grids_lose_nothing_in_trouble) {
  expect_cells<by::grid_producer>(where(), true);
}

TEST_P(grid_of_grids, consuming_grids_call_once) {
  expect_cells<by::grid_consumer>(where(), false);
}
TEST_P(grid_of_grids, consuming_grids_lose_nothing_in_trouble) {
  expect_cells<by::grid_consumer>(where(), true);
}

}  // namespace
}  // namespace grosr::sys::grid
