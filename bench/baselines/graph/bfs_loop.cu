// The CUDA graph of launched_bfs. In a library of its own: what sets the condition is linked on the
// device.
#include "baselines/graph/launched_steps.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::graphs {

#if CUDART_VERSION >= 12030

namespace {

__global__ void __launch_bounds__(256, 4)
    loop_body(const __grid_constant__ launched_step s, cudaGraphConditionalHandle again) {
  if (s.state->levels.plan.now == level_plan::finished) {
    if (simt::block_id() == 0 && simt::thread_id() == 0) cudaGraphSetConditional(again, 0);
    return;
  }
  if (s.step() && s.state->levels.plan.now == level_plan::finished)
    cudaGraphSetConditional(again, 0);
}

}  // namespace

cudaGraphExec_t make_loop(const device& where, const launched_step& step, unsigned blocks,
                          unsigned threads) {
  using simt::check_launch;
  cudaGraph_t graph = nullptr;
  check_launch(cudaGraphCreate(&graph, 0), "make a graph");
  cudaGraphConditionalHandle again{};
  check_launch(cudaGraphConditionalHandleCreate(&again, graph, 1, cudaGraphCondAssignDefault),
               "make a graph's condition");
  cudaGraphNodeParams loop{};
  loop.type = cudaGraphNodeTypeConditional;
  loop.conditional.handle = again;
  loop.conditional.type = cudaGraphCondTypeWhile;
  loop.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
#if CUDART_VERSION >= 13000
  const auto added = cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &loop);
#else
  const auto added = cudaGraphAddNode(&node, graph, nullptr, 0, &loop);
#endif
  check_launch(added, "add a loop to a graph");
  const simt::stream recorded(where);
  const auto stream = static_cast<cudaStream_t>(recorded.native());
  cudaGraph_t body = loop.conditional.phGraph_out[0];
  check_launch(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                             cudaStreamCaptureModeThreadLocal),
               "record a kernel");
  loop_body<<<blocks, threads, 0, stream>>>(step, again);
  check_launch(cudaStreamEndCapture(stream, &body), "end the recording of a kernel");
  cudaGraphExec_t executable = nullptr;
  check_launch(cudaGraphInstantiate(&executable, graph, 0), "make a graph with a loop");
  cudaGraphDestroy(graph);
  return executable;
}

#else

cudaGraphExec_t make_loop(const device&, const launched_step&, unsigned, unsigned) {
  return nullptr;
}

#endif

}  // namespace grosr::graphs
