// The grid of calls, for warps and parts of warps.
#include "sys/grid.hpp"

namespace grosr::sys::grid {
namespace {

GROSR_DEVICE_SUITE(grid_of_warps);

TEST_P(grid_of_warps, warps_call_once) { expect_cells<by::warp>(where(), false); }
TEST_P(grid_of_warps, warps_lose_nothing_in_trouble) { expect_cells<by::warp>(where(), true); }

TEST_P(grid_of_warps, parts_of_warps_call_once) { expect_cells<by::mask>(where(), false); }
TEST_P(grid_of_warps, parts_of_warps_lose_nothing_in_trouble) {
  expect_cells<by::mask>(where(), true);
}

}  // namespace
}  // namespace grosr::sys::grid
