// Work that is put into streams as a whole, again and again, with one call: a CUDA graph.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "grosr/simt/launch.hpp"

namespace grosr::simt {

class stream_graph_backend;

/// Parts, each of which is what a function puts into a stream, and which parts come before which.
/// Parts that do not come before each other run beside each other. For one thread at a time.
class stream_graph {
 public:
  /// Puts work into the stream, and neither waits nor allocates.
  using part = std::function<void(stream&)>;
  /// One of several, by number.
  using numbered_part = std::function<void(unsigned, stream&)>;

  /// Null where there is no such thing: on the host backend, and with CUDA before 12.3.
  static std::unique_ptr<stream_graph> make(const device& d);
  ~stream_graph();
  stream_graph(const stream_graph&) = delete;

  /// The next part, which begins after others, by number in the order in which they were added.
  /// Returns false for what a graph cannot have; the graph is of no use then. Throws what `p`
  /// throws, error(device_lost).
  bool add(std::span<const unsigned> after, const part& p);
  /// Nothing is added any more. Returns false, and throws, as add().
  bool finish();
  /// Puts others in the places of parts, by number: the same kernels and copies, with other
  /// addresses. What was put into streams before is not changed. Returns false where one is
  /// something else, and then the graph is of no use. Throws as add().
  bool replace(std::span<const unsigned> numbers, const numbered_part& p);
  /// Throws error(device_lost).
  void launch(stream& s);

 private:
  explicit stream_graph(std::unique_ptr<stream_graph_backend> b);
  std::unique_ptr<stream_graph_backend> backend_;
};

}  // namespace grosr::simt
