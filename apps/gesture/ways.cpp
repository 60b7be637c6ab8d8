#include "ways.hpp"

namespace grosr::gesture {

const std::vector<named_way>& all_ways() {
  static const std::vector<named_way> all{
      {"host", "OpenMP on the CPU", make_host},
      {"pipes", "four processes and pipes between them", make_pipes},
      {"modular", "each stage copies for itself, one thread", make_modular},
      {"by-hand", "one thread and one stream, copies only where needed", make_by_hand},
      {"best-by-hand", "a stream, buffers and CUDA graphs for each frame in flight",
       make_best_by_hand},
      {"flow", "a dataflow graph", make_flow},
  };
  return all;
}

}  // namespace grosr::gesture
