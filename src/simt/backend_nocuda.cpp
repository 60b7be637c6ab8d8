// The CUDA backend of a build without CUDA: there is no such device, and nothing else can be asked.
#include "simt/backend.hpp"

namespace grosr::simt {
namespace {

[[noreturn]] void absent() {
  throw error(errc::not_built,
              "this program was built without CUDA; use host:0 or build with nvcc");
}

}  // namespace

namespace cuda_backend {
int device_count(std::string& why_none) {
  why_none = "this program was built without CUDA";
  return 0;
}
device_properties properties(int) { absent(); }
std::string pci_address(int) { return {}; }
void* allocate(device, space, std::size_t) { absent(); }
void release(device, space, void*) noexcept {}
void copy(device, void*, const void*, std::size_t) { absent(); }
std::array<std::uint8_t, 16> uuid(int) { absent(); }
shared_allocation make_shareable(device, std::size_t) { absent(); }
void* map_shareable(device, int, std::size_t) { absent(); }
void unmap_shareable(device, void*, std::size_t) noexcept {}
std::unique_ptr<stream_backend> make_stream(device) { absent(); }
std::unique_ptr<doorbell_backend> make_doorbell(device, std::uint32_t*, std::uint32_t*,
                                                std::function<void()>) {
  absent();
}
std::unique_ptr<stream_order_backend> make_stream_order(device) { absent(); }
std::unique_ptr<timeline_backend> make_timeline(stream&) { absent(); }
std::unique_ptr<stream_graph_backend> make_stream_graph(const device&) { absent(); }
void queue_copy(stream&, void*, const void*, std::size_t) { absent(); }
void queue_copies(stream&, const copies&) { absent(); }
void check_order(device, CUstream_st*, const std::string&) { absent(); }
void check_event(device, CUevent_st*, const std::string&) { absent(); }
void wait_for(device, const moment&) { absent(); }
void wait_for_kernels(device) noexcept {}
void launch(const device&, void*, shape, const void*, const void*) { absent(); }
kernel_fit fit(const device&, const void*, unsigned) { absent(); }
std::size_t reserve_stack(const device&, std::size_t) { absent(); }
}  // namespace cuda_backend

on_device::on_device(const device&) : before_(-1) { absent(); }
on_device::~on_device() = default;

void check_launch(int, const std::string&) { absent(); }

}  // namespace grosr::simt
