#include <memory>

#include "limits/kernels.hpp"

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::tool {
namespace {

struct store_one_kernel {
  std::uint32_t* results;
  std::uint32_t i;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) results[i] = 2 * i;
  }
};

struct store_all_kernel {
  std::uint32_t* results;
  std::uint32_t n;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = simt::block_id() * simt::block_size() + simt::thread_id(); i < n;
         i += simt::grid_size() * simt::block_size())
      results[i] = 2 * i;
  }
};

struct add_one_kernel {
  std::uint32_t* data;
  std::uint32_t i;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) data[i] += 1;
  }
};

}  // namespace

struct launcher::state {
  simt::stream stream;
  unsigned sms;
};

launcher::launcher(const device& d) : state_(new state{simt::stream(d), d.properties().sms}) {}
launcher::~launcher() = default;

void launcher::store_one(std::uint32_t* results, std::uint32_t i) {
  simt::launch(state_->stream, {1, 32}, store_one_kernel{results, i});
}
void launcher::store_all(std::uint32_t* results, std::uint32_t n) {
  const bool gpu = state_->stream.where().is_cuda();
  const simt::shape grid = gpu ? simt::shape{(n + 255) / 256, 256} : simt::shape{state_->sms, 32};
  simt::launch(state_->stream, grid, store_all_kernel{results, n});
}
void launcher::first_stage(std::uint32_t* data, std::uint32_t i) { store_one(data, i); }
void launcher::second_stage(std::uint32_t* data, std::uint32_t i) {
  simt::launch(state_->stream, {1, 32}, add_one_kernel{data, i});
}
void launcher::wait() { state_->stream.wait(); }
void* launcher::native() const { return state_->stream.native(); }

#if defined(__CUDACC__)

struct kernel_graph::state {
  launcher launches;
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ~state() {
    if (executable) cudaGraphExecDestroy(executable);
    if (graph) cudaGraphDestroy(graph);
  }
};

void kernel_graph::replay() {
  simt::check_launch(cudaGraphLaunch(state_->executable, state_->stream), "replay a graph");
  state_->launches.wait();
}

std::unique_ptr<kernel_graph> store_graph(const device& d, std::uint32_t* results,
                                          std::uint32_t n) {
  if (!d.is_cuda()) return nullptr;
  using simt::check_launch;
  const simt::on_device here(d);
  std::unique_ptr<kernel_graph> g(new kernel_graph);
  g->state_.reset(new kernel_graph::state{launcher(d), nullptr});
  auto& s = *g->state_;
  s.stream = static_cast<cudaStream_t>(s.launches.native());
  check_launch(cudaStreamBeginCapture(s.stream, cudaStreamCaptureModeThreadLocal),
               "record a graph");
  for (std::uint32_t i = 0; i < n; ++i) s.launches.store_one(results, i);
  check_launch(cudaStreamEndCapture(s.stream, &s.graph), "end the recording of a graph");
  check_launch(cudaGraphInstantiate(&s.executable, s.graph, 0),
               "make a graph of " + std::to_string(n) + " kernels");
  return g;
}

#else

struct kernel_graph::state {};
void kernel_graph::replay() {}
std::unique_ptr<kernel_graph> store_graph(const device&, std::uint32_t*, std::uint32_t) {
  return nullptr;
}

#endif

kernel_graph::~kernel_graph() = default;

}  // namespace grosr::tool
