#include <array>

#include "recursion/queens.hpp"

namespace grosr::recursion {
namespace {

std::uint64_t solutions(std::uint32_t all, std::uint32_t columns, std::uint32_t left,
                        std::uint32_t right) {
  if (columns == all) return 1;
  std::uint64_t count = 0;
  for (std::uint32_t free = all & ~(columns | left | right); free != 0; free &= free - 1) {
    const std::uint32_t queen = free & -free;
    count += solutions(all, columns | queen, (left | queen) << 1, (right | queen) >> 1);
  }
  return count;
}

}  // namespace

std::uint64_t queens_on_host(std::uint32_t n) {
  return solutions((std::uint32_t{1} << n) - 1, 0, 0, 0);
}

std::uint64_t queens_number(std::uint32_t n) {
  static constexpr std::array<std::uint64_t, queens_most + 1> numbers{1,
                                                                      1,
                                                                      0,
                                                                      0,
                                                                      2,
                                                                      10,
                                                                      4,
                                                                      40,
                                                                      92,
                                                                      352,
                                                                      724,
                                                                      2'680,
                                                                      14'200,
                                                                      73'712,
                                                                      365'596,
                                                                      2'279'184,
                                                                      14'772'512,
                                                                      95'815'104,
                                                                      666'090'624,
                                                                      4'968'057'848,
                                                                      39'029'188'884,
                                                                      314'666'222'712,
                                                                      2'691'008'701'644,
                                                                      24'233'937'684'440};
  return numbers.at(n);
}

}  // namespace grosr::recursion
