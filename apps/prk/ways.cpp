#include "ways.hpp"

namespace grosr::prk {

std::unique_ptr<way> make_flow(const device& d, const problem& p, unsigned unrolled) {
  return p.tiles ? make_tile_flow(d, p, unrolled) : make_chain_flow(d, p, unrolled);
}

const std::vector<named_way>& all_ways() {
  static const std::vector<named_way> all{
      {"stream", "one stream, a launch for each kernel", make_stream},
      {"graph", "a CUDA graph by hand", make_graph},
      {"flow", "a dataflow graph", make_flow},
  };
  return all;
}

}  // namespace grosr::prk
