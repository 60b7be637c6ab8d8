// grosr-bench, which `grosr bench` starts.
#include "cases/benches.hpp"

int main(int argc, char** argv) {
  return grosr::tool::run_benches(
      {"grosr bench",
       "Measure: each rate beside its limit and its baselines, after its results are checked",
       grosr::tool::benches()},
      argc, argv);
}
