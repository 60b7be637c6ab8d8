// cilksort: sorts 32-bit keys on a device by fork and join.
#include "recursion/cilksort.hpp"
#include "recursion/sort_program.hpp"

int main(int argc, char** argv) {
  return grosr::recursion::sort_main<grosr::recursion::cilksort>(
      argc, argv, "cilksort",
      "Sorts 32-bit keys on a device as Cilk does: four quarters sorted, merged in pairs, and once "
      "more",
      100'000'000);
}
