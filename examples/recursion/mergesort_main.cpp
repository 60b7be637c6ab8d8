// mergesort: sorts 32-bit keys on a device by fork and join.
#include "recursion/mergesort.hpp"
#include "recursion/sort_program.hpp"

int main(int argc, char** argv) {
  return grosr::recursion::sort_main<grosr::recursion::mergesort>(
      argc, argv, "mergesort",
      "Sorts 32-bit keys on a device by mergesort: tasks fork the halves, and join to merge them",
      10'000'000);
}
