// Starting kernels, on either backend, and waiting for them.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "grosr/simt/detail/host_machine.hpp"
#include "grosr/simt/device.hpp"
#include "grosr/simt/owner.hpp"
#include "grosr/simt/process.hpp"

namespace grosr::simt {

/// Blocks in the grid and threads in a block (a multiple of 32).
struct shape {
  unsigned blocks = 1;
  unsigned threads = 32;
};

/// A queue of kernels on one device: they run in order, beside those of other streams. Movable
/// handle, not thread-safe. The destructor waits for nothing on a GPU; on the host it joins. A
/// stream that failed stays failed: what is launched behind the failure does not run.
class stream {
 public:
  /// Throws error(device_lost) when the GPU faulted.
  explicit stream(device d);
  ~stream();
  stream(stream&&) noexcept;
  stream& operator=(stream&&) noexcept;

  device where() const;

  /// True when everything launched so far has ended. Throws error(device_lost) after a fault, and
  /// on the host what a lane threw.
  bool done() const;

  /// Waits until done(). Throws as done() does.
  void wait() const;

  void* native() const;  ///< cudaStream_t on a GPU, else null

  /// Host backend: what the lanes of the kernel that runs wait for, of those that do something that
  /// has a name (doing.hpp), as far as is known within `limit`. Else nothing.
  std::vector<std::string> waits(std::chrono::nanoseconds limit) const;

  /// Host backend: Linux's numbers of the threads that run the lanes. Else none.
  std::vector<long> threads() const;

  /// Host backend: queues a function, which the stream's thread calls once. Behind a failure it is
  /// destroyed uncalled.
  void call_host(std::function<void()> function);

  /// Host backend: queues `kernel` (type-erased form of launch()).
  void launch_host(host::launch_shape shape, std::function<void()> kernel);

 private:
  struct state;
  owner<state, not_in_a_fork> state_;
};

/// Waits until every kernel launched on the device so far by this process has ended; on the host,
/// until none runs. Never throws: a device that was lost runs nothing.
void wait_for_kernels(device d) noexcept;

/// Throws error(device_lost...) if the last CUDA call or launch failed; `asked` begins the text.
void check_launch(int cuda_error, const std::string& asked);

/// Makes a GPU the calling thread's current one for a scope. Throws error(device_lost).
class on_device {
 public:
  explicit on_device(const device& d);
  ~on_device();
  on_device(const on_device&) = delete;

 private:
  int before_;  // -1: it was that one
};

/// What the compiler made of a kernel.
struct kernel_fit {
  unsigned blocks_per_sm = 0;  ///< co-resident blocks an SM can hold
  unsigned registers = 0;      ///< a thread
  unsigned shared_bytes = 0;   ///< static, a block
  /// Stack and spills of a thread, without recursive functions and those called by address.
  std::size_t local_bytes = 0;
};

namespace detail {
[[noreturn]] void throw_not_built(const device& d);

#if defined(__CUDACC__)
template <class Kernel, unsigned MaxThreads, unsigned MinBlocks>
__global__ void __launch_bounds__(MaxThreads, MinBlocks) entry(const __grid_constant__ Kernel k) {
  k();
}
#endif

/// What CUDA knows a kernel by in the calling file; null where nvcc did not compile that.
template <class Kernel, unsigned MaxThreads, unsigned MinBlocks>
const void* entry_of() {
#if defined(__CUDACC__)
  return reinterpret_cast<const void*>(&entry<Kernel, MaxThreads, MinBlocks>);
#else
  return nullptr;
#endif
}

/// launch() without its types, where `s` is on a GPU; false where it is not, and nothing was
/// launched. Throws as launch().
bool launch_on_gpu(stream& s, shape grid, const void* entry, const void* kernel);

/// fit() without its types.
kernel_fit fit(const device& d, const void* entry, unsigned threads);
}  // namespace detail

/// Launches `kernel`, a trivially copyable callable with a GROSR_DEVICE `operator()() const`, once
/// in every thread of `grid`. MaxThreads and MinBlocks are __launch_bounds__: they bound registers.
/// Throws error(not_built) when `s` is on a GPU and the calling file was not compiled by nvcc,
/// error(invalid_option) when the grid does not fit the kernel, error(device_lost) after a fault.
template <unsigned MaxThreads = 1024, unsigned MinBlocks = 1, class Kernel>
void launch(stream& s, shape grid, const Kernel& kernel) {
  if (!detail::launch_on_gpu(s, grid, detail::entry_of<Kernel, MaxThreads, MinBlocks>(), &kernel))
    s.launch_host({grid.blocks, grid.threads / warp_size, 0}, [kernel] { kernel(); });
}

/// Launches and waits.
template <class Kernel>
void run(device d, shape grid, const Kernel& kernel) {
  stream s(d);
  launch(s, grid, kernel);
  s.wait();
}

/// Asks how many blocks of `threads` of this kernel fit on one SM, and loads it eagerly, so that a
/// later launch cannot wait for a resident kernel. Errors as launch().
template <unsigned MaxThreads, unsigned MinBlocks, class Kernel>
kernel_fit fit(const device& d, unsigned threads) {
  return detail::fit(d, detail::entry_of<Kernel, MaxThreads, MinBlocks>(), threads);
}

/// Makes sure that device functions which call each other recursively have `bytes` of stack a
/// lane: how many bytes of device memory CUDA holds now for the stacks of the process's kernels,
/// for every lane the GPU can hold. On the host stacks are fixed, and this is 0. Throws
/// error(out_of_memory) when the device has not that much.
std::size_t reserve_stack(const device& d, std::size_t bytes);

/// Ends every kernel of its context, for when one cannot be ended by asking. The device is lost to
/// the process afterwards. Does nothing on the host.
GROSR_DEVICE inline void trap() {
#if GROSR_ON_GPU
  asm volatile("trap;");
#endif
}

/// Launches a kernel that does it; on the host, one that does nothing. load_trap(), before another
/// kernel is resident, has the GPU load it.
void launch_trap(stream& s);
void load_trap(const device& d);

}  // namespace grosr::simt
