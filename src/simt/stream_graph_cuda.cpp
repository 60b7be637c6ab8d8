#include <algorithm>
#include <vector>

#include "simt/driver_cuda.hpp"

namespace grosr::simt::cuda_backend {

#if CUDART_VERSION < 12030
std::unique_ptr<stream_graph_backend> make_stream_graph(const device&) { return nullptr; }
#else
namespace {

/// What the stream's next node is to come after.
cudaError_t ends_of(cudaStream_t s, std::vector<cudaGraphNode_t>& ends) {
  cudaStreamCaptureStatus status{};
  const cudaGraphNode_t* nodes = nullptr;
  std::size_t n = 0;
#if CUDART_VERSION >= 13000
  const cudaError_t e = cudaStreamGetCaptureInfo(s, &status, nullptr, nullptr, &nodes, nullptr, &n);
#else
  const cudaError_t e = cudaStreamGetCaptureInfo_v2(s, &status, nullptr, nullptr, &nodes, &n);
#endif
  if (e == cudaSuccess) ends.assign(nodes, nodes + n);
  return e;
}

/// Those before a node.
bool before_of(cudaGraphNode_t node, std::vector<cudaGraphNode_t>& before) {
  std::size_t n = 0;
#if CUDART_VERSION >= 13000
  const auto get = [&](cudaGraphNode_t* to) {
    return cudaGraphNodeGetDependencies(node, to, nullptr, &n);
  };
#else
  const auto get = [&](cudaGraphNode_t* to) { return cudaGraphNodeGetDependencies(node, to, &n); };
#endif
  if (get(nullptr) != cudaSuccess) return false;
  before.resize(n);
  return n == 0 || get(before.data()) == cudaSuccess;
}

struct graph_handle {
  cudaGraph_t it{};
  graph_handle() = default;
  graph_handle(const graph_handle&) = delete;
  ~graph_handle() {
    if (it != nullptr) cudaGraphDestroy(it);
  }
};

class cuda_stream_graph final : public stream_graph_backend {
 public:
  explicit cuda_stream_graph(const device& d)
      : device_(d), asked_("make a CUDA graph on " + d.name()), stream_(d) {
    const on_device here(device_.index());
    check(cudaGraphCreate(&graph_.it, 0), asked_);
  }
  ~cuda_stream_graph() override {
    if (ready_ != nullptr) cudaGraphExecDestroy(ready_);
    cudaGetLastError();
  }

  bool add(std::span<const unsigned> after, const stream_graph::part& p) override {
    const on_device here(device_.index());
    std::vector<cudaGraphNode_t> before;
    for (const unsigned a : after)
      before.insert(before.end(), parts_[a].ends.begin(), parts_[a].ends.end());
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    check(cudaStreamBeginCaptureToGraph(native(stream_), graph_.it, before.data(), nullptr,
                                        before.size(), cudaStreamCaptureModeThreadLocal),
          asked_);
    added made;
    cudaGraph_t same{};
    if (!capture(p, made.ends, same) || !way(made.ends, before, made.nodes)) return false;
    parts_.push_back(std::move(made));
    return true;
  }

  bool finish() override {
    const on_device here(device_.index());
    return succeeds(cudaGraphInstantiate(&ready_, graph_.it, 0));
  }

  /// All are captured at once, one behind the other.
  bool replace(std::span<const unsigned> numbers, const stream_graph::numbered_part& p) override {
    if (numbers.empty()) return true;
    const on_device here(device_.index());
    graph_handle made;
    std::vector<std::vector<cudaGraphNode_t>> ends(numbers.size() + 1);
    bool known = true;
    const stream_graph::part all = [&](stream& s) {
      for (std::size_t i = 0; known && i < numbers.size(); ++i) {
        p(numbers[i], s);
        known = succeeds(ends_of(native(s), ends[i + 1]));
      }
    };
    std::vector<cudaGraphNode_t> last, nodes;
    check(cudaStreamBeginCapture(native(stream_), cudaStreamCaptureModeThreadLocal), asked_);
    if (!capture(all, last, made.it) || !known) return false;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      nodes.clear();
      if (!way(ends[i + 1], ends[i], nodes)) return false;
      const std::vector<cudaGraphNode_t>& old = parts_[numbers[i]].nodes;
      if (nodes.size() != old.size()) return false;
      for (std::size_t k = 0; k < old.size(); ++k)
        if (!replace(old[k], nodes[k])) return false;
    }
    return true;
  }

  void launch(stream& s) override {
    const on_device here(device_.index());
    check(cudaGraphLaunch(ready_, native(s)), asked_);
  }

 private:
  struct added {
    std::vector<cudaGraphNode_t> nodes, ends;
  };

  /// Of what cannot be in a graph CUDA says so with an error that the thread is to forget.
  static bool succeeds(cudaError_t e) {
    if (e != cudaSuccess) cudaGetLastError();
    return e == cudaSuccess;
  }

  /// The stream captures: what `p` puts there. `ends`: what would come behind comes behind these.
  bool capture(const stream_graph::part& p, std::vector<cudaGraphNode_t>& ends, cudaGraph_t& made) {
    try {
      p(stream_);
    } catch (...) {
      succeeds(cudaStreamEndCapture(native(stream_), &made));
      throw;
    }
    const bool known = succeeds(ends_of(native(stream_), ends));
    return succeeds(cudaStreamEndCapture(native(stream_), &made)) && known && made != nullptr;
  }

  /// The nodes of a part, one behind the other, from the last to the first; `before` (sorted):
  /// those that it begins behind. False where they are not one behind the other: then nothing tells
  /// which is which.
  static bool way(std::vector<cudaGraphNode_t> ends, const std::vector<cudaGraphNode_t>& before,
                  std::vector<cudaGraphNode_t>& nodes) {
    std::sort(ends.begin(), ends.end());
    while (ends != before) {
      if (ends.size() != 1) return false;  // also where it has come past all that it began behind
      nodes.push_back(ends[0]);
      if (!before_of(nodes.back(), ends)) {
        cudaGetLastError();
        return false;
      }
      std::sort(ends.begin(), ends.end());
    }
    return true;
  }

  bool replace(cudaGraphNode_t old, cudaGraphNode_t by) {
    cudaGraphNodeType type{}, other{};
    if (!succeeds(cudaGraphNodeGetType(old, &type)) ||
        !succeeds(cudaGraphNodeGetType(by, &other)) || type != other)
      return false;
    if (type == cudaGraphNodeTypeKernel) {
      // By the driver, which knows kernels that another copy of CUDA's runtime has loaded, too.
      CUDA_KERNEL_NODE_PARAMS is{}, was{};
      return driver_.get_kernel(by, &is) == CUDA_SUCCESS &&
             driver_.get_kernel(old, &was) == CUDA_SUCCESS && is.func == was.func &&
             is.kern == was.kern && driver_.set_kernel(ready_, old, &is) == CUDA_SUCCESS;
    }
    if (type == cudaGraphNodeTypeMemcpy) {
      cudaMemcpy3DParms m{};
      return succeeds(cudaGraphMemcpyNodeGetParams(by, &m)) &&
             succeeds(cudaGraphExecMemcpyNodeSetParams(ready_, old, &m));
    }
    if (type == cudaGraphNodeTypeMemset) {
      cudaMemsetParams m{};
      return succeeds(cudaGraphMemsetNodeGetParams(by, &m)) &&
             succeeds(cudaGraphExecMemsetNodeSetParams(ready_, old, &m));
    }
    if (type == cudaGraphNodeTypeHost) {
      cudaHostNodeParams h{};
      return succeeds(cudaGraphHostNodeGetParams(by, &h)) &&
             succeeds(cudaGraphExecHostNodeSetParams(ready_, old, &h));
    }
    return type == cudaGraphNodeTypeEmpty;
  }

  struct driver {
    driver() {
      driver_function("cuGraphKernelNodeGetParams", get_kernel);
      driver_function("cuGraphExecKernelNodeSetParams", set_kernel);
    }
    CUresult (*get_kernel)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS*) = nullptr;
    CUresult (*set_kernel)(CUgraphExec, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS*) = nullptr;
  };

  const device device_;
  const std::string asked_;
  stream stream_;  // that captures
  graph_handle graph_;
  cudaGraphExec_t ready_{};
  std::vector<added> parts_;
  const driver driver_;
};

}  // namespace

std::unique_ptr<stream_graph_backend> make_stream_graph(const device& d) {
  return std::make_unique<cuda_stream_graph>(d);
}
#endif

}  // namespace grosr::simt::cuda_backend
