// The grid of calls, for lanes that come together and lanes that have diverged.
#include "sys/grid.hpp"

namespace grosr::sys::grid {
namespace {

GROSR_DEVICE_SUITE(grid_of_lanes);

TEST_P(grid_of_lanes, lanes_call_once) { expect_cells<by::lane>(where(), false); }
TEST_P(grid_of_lanes, lanes_lose_nothing_in_trouble) { expect_cells<by::lane>(where(), true); }

TEST_P(grid_of_lanes, diverged_lanes_call_once) { expect_cells<by::diverged>(where(), false); }
TEST_P(grid_of_lanes, diverged_lanes_lose_nothing_in_trouble) {
  expect_cells<by::diverged>(where(), true);
}

}  // namespace
}  // namespace grosr::sys::grid
