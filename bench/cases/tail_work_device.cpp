#include <memory>

#include "cases/tail_work.hpp"

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/launch.hpp"
#include "measure/samples.hpp"
#include "work/hosted.hpp"

namespace grosr::tool {
namespace {

using counter = simt::atomic_ref<std::uint32_t>;

GROSR_DEVICE inline void spin_for(std::uint32_t ns, auto&& clock) {
  const std::uint64_t end = clock() + ns;
  while (clock() < end) {
  }
}

/// Lane 0 of a warp, and the others wait for it.
GROSR_DEVICE inline void spin_in_warp(std::uint32_t ns, std::uint32_t* ran) {
  if (simt::lane_id() == 0) {
    spin_for(ns, [] { return simt::clock_ns(); });
    counter(*ran).fetch_add(1, simt::relaxed);
  }
  simt::sync_warp();
}

struct warp_each_kernel {
  const std::uint32_t* ns;
  std::uint32_t* ran;
  GROSR_DEVICE void operator()() const {
    spin_in_warp(ns[simt::block_id()], ran + simt::block_id());
  }
};

struct loop_kernel {
  const std::uint32_t* ns;
  std::uint32_t *ran, *next, count;
  GROSR_DEVICE void operator()() const {
    for (;;) {
      std::uint32_t i = 0;
      if (simt::lane_id() == 0) i = counter(*next).fetch_add(1, simt::relaxed);
      i = simt::shuffle(simt::full_mask, i, 0);
      if (i >= count) return;
      spin_in_warp(ns[i], ran + i);
    }
  }
};

}  // namespace

GROSR_DEVICE void spin_task::operator()(auto& context) const {
  if (context.rank() == 0) {
    spin_for(ns, [&] { return context.clock_ns(); });
    counter(*ran).fetch_add(1, simt::relaxed);
  }
  context.sync();
}

GROSR_DEVICE void spin_all::operator()(auto& context) const {
  for (std::uint32_t i = context.rank(); i < count; i += context.size())
    context.spawn(spin_task{ran + i, ns[i], 0});
}

std::unique_ptr<any_runtime> make_tail_runtime(const device& d, const runtime_options& options) {
  return std::make_unique<hosted<spin_task, spin_all>>(d, options);
}

struct tail_kernels::state {
  simt::stream stream;
  simt::buffer<std::uint32_t> next;
};

tail_kernels::tail_kernels(const device& d)
    : state_(new state{simt::stream(d), simt::buffer<std::uint32_t>(d, simt::space::device, 1)}) {}
tail_kernels::~tail_kernels() = default;

double tail_kernels::warp_each(const tail_work& work) {
  return timed([&] {
    simt::launch(state_->stream, {work.count(), simt::warp_size},
                 warp_each_kernel{work.device_ns.data(), work.ran.data()});
    state_->stream.wait();
  });
}

double tail_kernels::loop(const tail_work& work, unsigned warps) {
  constexpr unsigned threads = run::block_threads;
  const std::uint32_t zero[1] = {0};
  state_->next.copy_from(zero);
  return timed([&] {
    simt::launch(
        state_->stream, {std::max(1u, warps * simt::warp_size / threads), threads},
        loop_kernel{work.device_ns.data(), work.ran.data(), state_->next.data(), work.count()});
    state_->stream.wait();
  });
}

}  // namespace grosr::tool
