// Ways to compute a work again and again, for rounds of new inputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grosr/simt/device.hpp"
#include "work.hpp"

namespace grosr::composition {

/// Made once, and run several times. What it needs is made with it.
class way {
 public:
  virtual ~way() = default;
  /// Computes rounds from `first` on. Returns the outputs of the last one.
  virtual arrays run(unsigned first, unsigned rounds) = 0;
  /// Bytes that it copied between the host and the device so far; 0: not counted.
  virtual std::uint64_t copied_bytes() const { return 0; }
};

struct named_way {
  const char* name;
  const char* text;
  std::unique_ptr<way> (*make)(const device& d, const work& w);
};

/// One thread calls one operation after the other, each of which copies what it needs there and
/// what it made back.
std::unique_ptr<way> make_modular_by_one_thread(const device& d, const work& w);
/// The same operations, called by eight threads that wait for each other's results.
std::unique_ptr<way> make_modular(const device& d, const work& w);
/// One thread and one stream; copies inputs there and outputs back, and nothing else.
std::unique_ptr<way> make_by_hand(const device& d, const work& w);
/// Three sets of buffers: inputs of the next round are copied while this one is computed and the
/// outputs of the last one come back; all operations are one CUDA graph; inputs, and outputs, lie
/// side by side and are one copy.
std::unique_ptr<way> make_best_by_hand(const device& d, const work& w);
/// A dataflow graph.
std::unique_ptr<way> make_flow(const device& d, const work& w);

const std::vector<named_way>& all_ways();

}  // namespace grosr::composition
