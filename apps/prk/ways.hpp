// Ways to run the iterations of a problem, whose arrays stay in device memory.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grosr/simt/device.hpp"
#include "problem.hpp"

namespace grosr::prk {

/// What a dataflow graph says of itself.
struct flow_counts {
  std::uint64_t copied_bytes = 0;   ///< between the host and the device so far
  std::uint64_t started_nodes = 0;  ///< in a round: nodes that run as one are one
  std::vector<std::string> events;
};

/// Made once, with the arrays as they are initially, and run several times.
class way {
 public:
  virtual ~way() = default;
  /// Goes on with so many rounds, each of which has as many iterations as the way was made for, and
  /// waits for their end.
  virtual void run(unsigned rounds) = 0;
  /// The arrays as they are now.
  virtual arrays results() = 0;
  /// None: it is no dataflow graph.
  virtual std::optional<flow_counts> counts() const { return std::nullopt; }
};

struct named_way {
  const char* name;
  const char* text;
  /// A round has `unrolled` iterations.
  std::unique_ptr<way> (*make)(const device& d, const problem& p, unsigned unrolled);
};

/// One stream; a launch for each part.
std::unique_ptr<way> make_stream(const device& d, const problem& p, unsigned unrolled);
/// A round is a CUDA graph, where there are such; else as make_stream().
std::unique_ptr<way> make_graph(const device& d, const problem& p, unsigned unrolled);
/// A dataflow graph.
std::unique_ptr<way> make_flow(const device& d, const problem& p, unsigned unrolled);

// The two forms of it: nodes of a wavefront hand over the edges of their tiles; all others hand
// over whole arrays.
std::unique_ptr<way> make_tile_flow(const device& d, const problem& p, unsigned unrolled);
std::unique_ptr<way> make_chain_flow(const device& d, const problem& p, unsigned unrolled);

const std::vector<named_way>& all_ways();

}  // namespace grosr::prk
