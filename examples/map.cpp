// A hash table that lies on several ranks: tasks count in it what they come across, and look up
// what was counted. Two ranks by default; `map N` has N.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <grosr/grosr.hpp>
#include <grosr/net/map.hpp>

// [count]
struct more {  // what an update does to a value, on the rank that has it
  std::uint32_t by;
  GROSR_DEVICE void operator()(std::uint32_t& n) const { n += by; }
};
using counts_map = grosr::net::map<std::uint32_t, more>;
struct tally {  // counts how often numbers come up
  grosr::net::map_ref<std::uint32_t, more> counts;
  std::uint64_t first;
  GROSR_DEVICE void operator()(auto& context) const {
    auto world = grosr::net::world_of(context);
    for (std::uint64_t i = first; i < first + 1000; ++i)
      counts.update(world, i * i * i % 1009 << 40, more{1});
  }
};
// [count]

// [find]
struct told {  // runs when the entry has come
  using result = std::uint32_t;
  grosr::net::map_found<std::uint32_t> entry;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(entry.there ? entry.value : 0);
    return 0;
  }
};
struct look_up {
  using result = std::uint32_t;
  std::uint64_t key;
  grosr::net::map_ref<std::uint32_t, more> counts;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(told{});
    counts.find(grosr::net::world_of(context), key, &next.entry);
  }
};
// [find]

int main(int argc, char** argv) {
  const std::uint32_t ranks = argc > 1 ? static_cast<std::uint32_t>(std::atoi(argv[1])) : 2;
  grosr::device device = grosr::device::best();
  grosr::net::rank_options rank{.where = device};
  if (device.is_cuda()) rank.runtime.sms = 8;  // a share of the GPU for each
  // [world]
  grosr::net::world<tally, look_up, told, counts_map::tasks> world(std::vector(ranks, rank));
  counts_map counts(world, 1009);  // room for so many entries
  for (std::uint32_t r = 0; r < world.size(); ++r) world.submit(r, tally{counts.ref(), r * 1009});
  world.wait_all();
  std::uint32_t zeros = world.fork(0, look_up{0, counts.ref()}).get();
  // [world]
  std::uint64_t all = 0;
  for (const auto& e : counts.entries()) all += e.value;
  std::printf("%u ranks counted %llu numbers, %llu different ones; 0 came up %u times\n",
              world.size(), static_cast<unsigned long long>(all),
              static_cast<unsigned long long>(counts.size()), zeros);
  return all == 1000u * world.size() && zeros == world.size() && counts.size() <= 1009 ? 0 : 1;
}
