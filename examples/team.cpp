// A team carries out loops inside a task; a mailbox has that task stay for the next request.
#include <cmath>
#include <cstdio>
#include <vector>

#include "grosr/run/for_each.hpp"
#include "grosr/run/mailbox.hpp"
#include "grosr/run/runtime.hpp"
#include "grosr/simt/buffer.hpp"

struct add {  // a chunk by a whole block
  const float* x;
  float* sum;
  GROSR_DEVICE void operator()(auto& context, std::uint64_t first, std::uint64_t last) const {
    float mine = 0;
    for (std::uint64_t i = first + context.rank(); i < last; i += context.size()) mine += x[i];
    grosr::simt::atomic_ref<float>(*sum).fetch_add(mine, grosr::simt::relaxed);
  }
};
struct scale {  // an item by one thread
  float* x;
  const float* sum;
  GROSR_DEVICE void operator()(std::uint64_t i) const { x[i] /= *sum; }
};
using loops = grosr::team_bodies<add, scale>;

struct normalise {  // two steps: the second one needs all of the first
  static constexpr grosr::width width = grosr::width::block;
  static constexpr bool runs_long = true;
  loops* shared;
  float *x, *sum;
  std::uint64_t n;
  GROSR_DEVICE int operator()(auto& context) const {
    grosr::team_loops team(shared, context);
    if (context.rank() == 0) *sum = 0;
    if (const int status = team.for_each(n, 4096, add{x, sum})) return status;
    return team.for_each(n, 4096, scale{x, sum});
  }
};

struct normaliser {  // the same, for every request of a mailbox
  static constexpr grosr::width width = grosr::width::block;
  struct request {
    std::uint32_t first, count;
  };
  using answer = float;
  loops* shared;
  float *x, *sum;
  GROSR_DEVICE int operator()(auto& context, const request& r, float& before) const {
    const int status = normalise{shared, x + r.first, sum, r.count}(context);
    if (context.rank() == 0) before = *sum;
    return status;
  }
};

int main() {
  const std::uint32_t n = 1 << 16;
  const grosr::device where = grosr::device::best();
  grosr::simt::buffer<float> x(where, grosr::simt::space::device, n);
  grosr::simt::buffer<float> sum(where, grosr::simt::space::device, 1);
  x.copy_from(std::vector<float>(n, 2.0f));
  grosr::runtime<normalise, grosr::mail_server<normaliser>, grosr::team_helper<loops>> runtime(
      where);
  const grosr::team_memory<loops> memory(runtime);

  runtime.submit(normalise{memory.get(), x.data(), sum.data(), n}).wait();

  grosr::mailbox<normaliser> box(runtime, {memory.get(), x.data(), sum.data()});
  auto left = box.ask({0, n / 2});
  auto right = box.ask({n / 2, n / 2});
  const float half = left.get(), other = right.get();

  runtime.wait_all();
  std::vector<float> values(n);
  x.copy_to(values);
  std::printf("halves of %.3f and %.3f, each item is %.3g\n", half, other, values[0]);
  return std::abs(half - 0.5f) < 1e-3f && std::abs(other - 0.5f) < 1e-3f &&
                 std::abs(values[n - 1] - 2.0f / n) < 1e-7f
             ? 0
             : 1;
}
