// In a library of its own: what launches a graph from the device is linked there.
#include "baselines/chain/relaunched.hpp"

#include <vector>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::tool {
namespace {

struct count_down {
  std::uint32_t left, done;
};

__global__ void hop(count_down* at) {
  ++at->done;
  if (--at->left != 0) cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}

}  // namespace

struct relaunched_chain::state {
  device where;
  simt::stream stream;
  simt::buffer<count_down> words;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  explicit state(const device& d) : where(d), stream(d), words(d, simt::space::device, 1) {}
  ~state() {
    if (executable) cudaGraphExecDestroy(executable);
    if (graph) cudaGraphDestroy(graph);
  }
};

std::unique_ptr<relaunched_chain> relaunched_chain::make(const device& d) {
  if (!d.is_cuda()) return nullptr;
  using simt::check_launch;
  const simt::on_device here(d);
  std::unique_ptr<relaunched_chain> c(new relaunched_chain);
  c->state_ = std::make_unique<state>(d);
  auto& s = *c->state_;
  const auto stream = static_cast<cudaStream_t>(s.stream.native());
  check_launch(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "record a graph");
  hop<<<1, 1, 0, stream>>>(s.words.data());
  check_launch(cudaStreamEndCapture(stream, &s.graph), "end the recording of a graph");
  check_launch(cudaGraphInstantiate(&s.executable, s.graph, cudaGraphInstantiateFlagDeviceLaunch),
               "make a graph that the device launches");
  check_launch(cudaGraphUpload(s.executable, stream), "upload a graph");
  s.stream.wait();
  return c;
}

std::uint32_t relaunched_chain::run(std::uint32_t hops) {
  auto& s = *state_;
  const simt::on_device here(s.where);
  s.words.copy_from(std::vector<count_down>{{hops, 0}});
  simt::check_launch(cudaGraphLaunch(s.executable, static_cast<cudaStream_t>(s.stream.native())),
                     "launch a graph");
  s.stream.wait();
  std::vector<count_down> got(1);
  s.words.copy_to(got);
  return got[0].done;
}

relaunched_chain::~relaunched_chain() = default;

}  // namespace grosr::tool
