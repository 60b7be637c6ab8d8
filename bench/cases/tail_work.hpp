// Tasks whose times differ by four orders of magnitude, and the same work by bare kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grosr/simt/buffer.hpp"
#include "work/any_runtime.hpp"

namespace grosr::tool {

/// A warp task: lane 0 reads context.clock_ns() until `ns` have passed, and the others wait for it
/// in context.sync(). Then it adds 1 to `*ran`.
struct spin_task {
  static constexpr unsigned number = 0;
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* ran;
  std::uint32_t ns, reserved;
  GROSR_DEVICE void operator()(auto& context) const;
};
static_assert(sizeof(spin_task) == 16);

/// A warp task that starts spin_task{ran + i, ns[i]} for i < count.
struct spin_all {
  static constexpr unsigned number = 1;
  static constexpr grosr::width width = grosr::width::warp;
  const std::uint32_t* ns;
  std::uint32_t* ran;
  std::uint32_t count, reserved;
  GROSR_DEVICE void operator()(auto& context) const;
};

std::unique_ptr<any_runtime> make_tail_runtime(const device& d, const runtime_options& options);

/// The times, and how often each task ran.
struct tail_work {
  std::vector<std::uint32_t> ns;
  simt::buffer<std::uint32_t> device_ns, ran;

  /// `count` times from `least_ns` to `most_ns`, Pareto distributed with exponent 1, from a fixed
  /// seed.
  tail_work(const device& d, std::uint32_t count, double least_ns, double most_ns);

  std::uint32_t count() const { return static_cast<std::uint32_t>(ns.size()); }
  double longest_us() const;
  double sum_us() const;
  void clear();
  /// What is wrong when all ran `times` times since clear(); else empty.
  std::string wrong(std::uint32_t times) const;
};

/// Bare kernels that do the same work: microseconds from the launch to the end.
class tail_kernels {
 public:
  explicit tail_kernels(const device& d);
  ~tail_kernels();
  double warp_each(const tail_work& work);  ///< a block of one warp for each
  /// So many warps, in blocks like the runtime's, that take the next one from a counter.
  double loop(const tail_work& work, unsigned warps);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::tool
