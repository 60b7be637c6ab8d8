#include "grosr/simt/stream_graph.hpp"

#include "simt/backend.hpp"

namespace grosr::simt {

stream_graph::stream_graph(std::unique_ptr<stream_graph_backend> b) : backend_(std::move(b)) {}
stream_graph::~stream_graph() = default;

std::unique_ptr<stream_graph> stream_graph::make(const device& d) {
  if (!d.is_cuda()) return nullptr;
  auto backend = cuda_backend::make_stream_graph(d);
  return backend ? std::unique_ptr<stream_graph>(new stream_graph(std::move(backend))) : nullptr;
}

bool stream_graph::add(std::span<const unsigned> after, const part& p) {
  return backend_->add(after, p);
}
bool stream_graph::finish() { return backend_->finish(); }
bool stream_graph::replace(std::span<const unsigned> numbers, const numbered_part& p) {
  return backend_->replace(numbers, p);
}
void stream_graph::launch(stream& s) { backend_->launch(s); }

}  // namespace grosr::simt
