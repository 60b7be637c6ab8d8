// The grid of calls, for blocks in every order.
#include "sys/grid.hpp"

namespace grosr::sys::grid {
namespace {

GROSR_DEVICE_SUITE(grid_of_blocks);

TEST_P(grid_of_blocks, strong_blocks_call_once) { expect_cells<by::strong>(where(), false); }
TEST_P(grid_of_blocks, strong_blocks_lose_nothing_in_trouble) {
  expect_cells<by::strong>(where(), true);
}

TEST_P(grid_of_blocks, producing_blocks_call_once) { expect_cells<by::producer>(where(), false); }
TEST_P(grid_of_blocks, producing_blocks_lose_nothing_in_trouble) {
  expect_cells<by::producer>(where(), true);
}

TEST_P(grid_of_blocks, consuming_blocks_call_once) { expect_cells<by::consumer>(where(), false); }
TEST_P(grid_of_blocks, consuming_blocks_lose_nothing_in_trouble) {
  expect_cells<by::consumer>(where(), true);
}

}  // namespace
}  // namespace grosr::sys::grid
