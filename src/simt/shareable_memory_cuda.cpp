// Device memory that other processes map: the driver's virtual memory management, by file
// descriptors.
#include <cuda.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "simt/context_cuda.hpp"
#include "simt/doorbells_cuda.hpp"
#include "simt/driver_cuda.hpp"

namespace grosr::simt::cuda_backend {
namespace {

constexpr auto by_descriptor = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

struct memory_functions {
  decltype(&cuDeviceGetAttribute) attribute;
  decltype(&cuGetErrorName) name_error;
  decltype(&cuMemGetAllocationGranularity) granularity;
  decltype(&cuMemCreate) create;
  decltype(&cuMemRelease) release;
  decltype(&cuMemExportToShareableHandle) export_file;
  decltype(&cuMemImportFromShareableHandle) import_file;
  decltype(&cuMemAddressReserve) reserve;
  decltype(&cuMemAddressFree) unreserve;
  decltype(&cuMemMap) map;
  decltype(&cuMemUnmap) unmap;
  decltype(&cuMemSetAccess) set_access;

  memory_functions() {
    driver_function("cuDeviceGetAttribute", attribute);
    driver_function("cuGetErrorName", name_error);
    driver_function("cuMemGetAllocationGranularity", granularity);
    driver_function("cuMemCreate", create);
    driver_function("cuMemRelease", release);
    driver_function("cuMemExportToShareableHandle", export_file);
    driver_function("cuMemImportFromShareableHandle", import_file);
    driver_function("cuMemAddressReserve", reserve);
    driver_function("cuMemAddressFree", unreserve);
    driver_function("cuMemMap", map);
    driver_function("cuMemUnmap", unmap);
    driver_function("cuMemSetAccess", set_access);
  }
  static const memory_functions& all() {
    static const memory_functions found;
    return found;
  }
};

void check_driver(CUresult r, const device& d, const char* asked) {
  if (r == CUDA_SUCCESS) return;
  const char* name = nullptr;
  memory_functions::all().name_error(r, &name);
  throw error(errc::device_lost, fmt::format("could not {} on {}: {}", asked, d.name(),
                                             name != nullptr ? name : "an unknown error"));
}

CUmemAllocationProp kind_of(const device& d) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.requestedHandleTypes = by_descriptor;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = d.index();
  return p;
}

/// As the driver gives it. The same in each process.
std::size_t rounded(const device& d, std::size_t bytes) {
  const CUmemAllocationProp p = kind_of(d);
  std::size_t unit = 0;
  check_driver(memory_functions::all().granularity(&unit, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM), d,
               "ask for the granularity of memory");
  return (bytes + unit - 1) / unit * unit;
}

/// Memory of the driver, of which a mapping keeps its own share.
struct owned_handle {
  CUmemGenericAllocationHandle it{};
  owned_handle() = default;
  owned_handle(const owned_handle&) = delete;
  ~owned_handle() {
    if (it != 0) memory_functions::all().release(it);
  }
};

/// Null: the handle has not as many bytes.
void* map_handle(const device& d, CUmemGenericAllocationHandle handle, std::size_t whole) {
  const memory_functions& f = memory_functions::all();
  CUdeviceptr at = 0;
  check_driver(f.reserve(&at, whole, 0, 0, 0), d, "reserve addresses");
  if (f.map(at, whole, 0, handle, 0) != CUDA_SUCCESS) {
    f.unreserve(at, whole);
    return nullptr;
  }
  CUmemAccessDesc access{};
  access.location = kind_of(d).location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (const CUresult r = f.set_access(at, whole, &access, 1); r != CUDA_SUCCESS) {
    f.unmap(at, whole);
    f.unreserve(at, whole);
    check_driver(r, d, "get access to shared memory");
  }
  return reinterpret_cast<void*>(at);
}

void check_support(const device& d) {
  int has_addresses = 0, has_descriptors = 0;
  const auto& f = memory_functions::all();
  check_driver(f.attribute(&has_addresses, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                           d.index()),
               d, "ask for what the device can");
  check_driver(
      f.attribute(&has_descriptors, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
                  d.index()),
      d, "ask for what the device can");
  if (has_addresses == 0 || has_descriptors == 0)
    throw error(errc::not_built,
                fmt::format("share memory of {}: the driver lets no other process map it by a file "
                            "descriptor; share memory of the host",
                            d.name()));
}

}  // namespace

std::array<std::uint8_t, 16> uuid(int index) {
  cudaDeviceProp found{};
  check(cudaGetDeviceProperties(&found, index),
        fmt::format("ask for the properties of cuda:{}", index));
  std::array<std::uint8_t, 16> id{};
  for (std::size_t i = 0; i < id.size(); ++i)
    id[i] = static_cast<std::uint8_t>(found.uuid.bytes[i]);
  return id;
}

shared_allocation make_shareable(device d, std::size_t bytes) {
  const on_device here(d.index());
  gpu& g = gpu::at(d.index());
  check_support(d);
  const memory_functions& f = memory_functions::all();
  const std::size_t whole = rounded(d, bytes);
  const CUmemAllocationProp p = kind_of(d);
  CUmemGenericAllocationHandle made{};
  const CUresult r = f.create(&made, whole, &p, 0);
  if (r == CUDA_ERROR_OUT_OF_MEMORY) {
    std::size_t available = 0, total = 0;
    cudaMemGetInfo(&available, &total);
    throw error(errc::out_of_memory,
                fmt::format("{} of device memory asked for on {}, for several processes; it has {} "
                            "({} free); ask for less",
                            in_units(whole), d.name(), in_units(total), in_units(available)));
  }
  check_driver(r, d, "allocate memory for several processes");
  owned_handle handle;
  handle.it = made;
  shared_allocation a{map_handle(d, made, whole), -1};
  try {
    if (a.data == nullptr) throw error(errc::device_lost, "could not map memory on " + d.name());
    check_driver(f.export_file(&a.file, made, by_descriptor, 0), d, "export memory");
    fcntl(a.file, F_SETFD, FD_CLOEXEC);
    // It may hold what this process had there before.
    const std::string asked = fmt::format("clear {} on {}", in_units(whole), d.name());
    check(cudaMemsetAsync(a.data, 0, whole, g.stream), asked);
    check(cudaStreamSynchronize(g.stream), asked);
  } catch (...) {
    if (a.file >= 0) ::close(a.file);
    if (a.data != nullptr) unmap_shareable(d, a.data, bytes);
    throw;
  }
  return a;
}

void* map_shareable(device d, int file, std::size_t bytes) {
  const on_device here(d.index());
  gpu::at(d.index());
  check_support(d);
  owned_handle handle;
  if (memory_functions::all().import_file(
          &handle.it, reinterpret_cast<void*>(static_cast<std::uintptr_t>(file)), by_descriptor) !=
      CUDA_SUCCESS)
    return nullptr;
  return map_handle(d, handle.it, rounded(d, bytes));
}

void unmap_shareable(device d, void* p, std::size_t bytes) noexcept {
  try {
    const on_device here(d.index());
    const hold_doorbells no_doorbells;  // it may wait for kernels, as cudaFree() does
    const memory_functions& f = memory_functions::all();
    const std::size_t whole = rounded(d, bytes);
    f.unmap(reinterpret_cast<CUdeviceptr>(p), whole);
    f.unreserve(reinterpret_cast<CUdeviceptr>(p), whole);
  } catch (...) {  // the device is lost, and its memory with it
  }
  cudaGetLastError();
}

}  // namespace grosr::simt::cuda_backend
