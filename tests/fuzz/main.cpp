// grosr-fuzz: random input, right and wrong, for the parts that take input from kernels.
#include "fuzz/syscalls_fuzz.hpp"
#include "measure/bench.hpp"

int main(int argc, char** argv) {
  return grosr::tool::run_benches(
      {"grosr-fuzz",
       "Fuzz: random input of known seeds, until whatever goes wrong",
       {{"syscalls",
         "random system calls, right and wrong, from kernels; ends at whatever goes wrong",
         {{"SECONDS", "how long; default 5", 1, 1'000'000},
          {"SEED", "of the first round; replays what went wrong there; random", 0, ~0ull}},
         "grosr-fuzz syscalls 600 1 --device host:0",
         grosr::tool::fuzz_syscalls,
         false,
         "syscalls-fuzz"}}},
      argc, argv);
}
