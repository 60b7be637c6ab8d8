// Tasks on several ranks: they change elements that other ranks have, start tasks there, and ask
// them for results. Two ranks by default; `messages N` has N.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <grosr/grosr.hpp>
#include <grosr/net/world.hpp>

// [tasks]
struct count {  // counts numbers into bins that lie on all ranks
  grosr::net::array_ref<std::uint32_t> bins;
  std::uint64_t first;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = grosr::net::world_of(context);
    for (std::uint64_t i = first; i < first + 1000; ++i) world.add(bins, i * i % bins.size(), 1u);
  }
};
// [tasks]

// [visit]
struct visit {  // goes from rank to rank, and leaves a mark on each
  grosr::net::array_ref<std::uint32_t> marks;
  std::uint32_t left;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = grosr::net::world_of(context);
    world.local(marks)[0] += 1;
    if (left != 0) world.send((world.rank() + 1) % world.size(), visit{marks, left - 1});
  }
};
// [visit]

// [call]
struct largest {  // the largest of a rank's own bins
  using result = std::uint32_t;
  grosr::net::array_ref<std::uint32_t> bins;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = grosr::net::world_of(context);
    std::uint32_t most = 0;
    for (std::uint64_t i = 0; i < bins.size_of(world.rank()); ++i)
      most = world.local(bins)[i] > most ? world.local(bins)[i] : most;
    context.give(most);
  }
};
struct larger {  // runs when both results have come
  using result = std::uint32_t;
  std::uint32_t a, b;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();  // a rank could not answer
    context.give(a > b ? a : b);
    return 0;
  }
};
struct ask {  // asks the first rank and the last one
  using result = std::uint32_t;
  grosr::net::array_ref<std::uint32_t> bins;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = grosr::net::world_of(context);
    auto& next = context.join(larger{});
    world.call(0, largest{bins}, &next.a);
    world.call(world.size() - 1, largest{bins}, &next.b);
  }
};
// [call]

int main(int argc, char** argv) {
  const std::uint32_t ranks = argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 2;
  grosr::device device = grosr::device::best();
  // [world]
  grosr::net::rank_options rank{.where = device};
  if (device.is_cuda()) rank.runtime.sms = 8;  // a share of the GPU for each
  grosr::net::world<count, visit, ask, larger, grosr::net::callable<largest>> world(
      std::vector(ranks, rank));
  grosr::net::array<std::uint32_t> bins(world, 4096), marks(world, world.size());
  for (std::uint32_t r = 0; r < world.size(); ++r) world.submit(r, count{bins.ref(), r * 1000});
  world.submit(0, visit{marks.ref(), 10 * world.size() - 1});
  world.wait_all();
  // [world]
  const std::uint32_t most = world.fork(0, ask{bins.ref()}).get();
  std::vector<std::uint32_t> counted(bins.size()), marked(marks.size());
  bins.copy_to(counted);
  marks.copy_to(marked);
  std::uint64_t all = 0;
  for (std::uint32_t n : counted) all += n;
  bool each = true;
  for (std::uint32_t n : marked) each = each && n == 10;
  std::printf("%u ranks counted %llu numbers; the fullest bin asked about has %u\n", world.size(),
              static_cast<unsigned long long>(all), most);
  return all == 1000u * world.size() && each && most != 0 ? 0 : 1;
}
