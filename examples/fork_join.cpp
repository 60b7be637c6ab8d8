// Tasks wait for tasks: the heaviest leaf of a tree, whose nodes are the work of lanes, and whose
// leaves that of warps.
#include <algorithm>
#include <cstdio>
#include <grosr/grosr.hpp>

// [largest]
struct largest {
  using result = std::uint64_t;
  std::uint64_t of[3];  // what the children found goes here
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();  // a child failed: so do we
    std::uint64_t most = 0;
    for (std::uint64_t n : of) most = n > most ? n : most;
    context.give(most);
    return 0;
  }
};
// [largest]

// [look]
struct weigh;  // a task of a warp
struct look {
  using result = std::uint64_t;
  std::uint32_t node, depth;
  GROSR_DEVICE void operator()(auto& context) const;
};
struct weigh {
  using result = std::uint64_t;
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t node;
  GROSR_DEVICE int operator()(auto& context) const {
    // 32 lanes are here. The one of rank 0 speaks for all.
    std::uint32_t mine = (node * 32 + context.rank()) * 2654435761u >> 12;
    for (unsigned step = 16; step != 0; step /= 2) {
      const std::uint32_t other =
          grosr::simt::shuffle(grosr::simt::full_mask, mine, context.rank() ^ step);
      mine = other > mine ? other : mine;
    }
    if (context.rank() == 0) context.give(mine);
    return node == 13 ? -EDOM : 0;  // 13 is nothing to weigh
  }
};
GROSR_DEVICE void look::operator()(auto& context) const {
  if (depth == 0) return context.pass(weigh{node});  // its result is this one's
  auto& next = context.join(largest{});
  for (std::uint32_t i = 0; i < 3; ++i) context.fork(look{node * 3 + i, depth - 1}, &next.of[i]);
}
// [look]

// [host]
int main() {
  grosr::runtime<look, largest, weigh> runtime;
  auto deep = runtime.fork(look{1, 6});   // does not wait
  auto wrong = runtime.fork(look{0, 3});  // comes by node 13
  const std::uint64_t most = deep.get();  // waits
  const int status = wrong.status();      // waits: -EDOM, where get() would throw
  std::printf("%llu, and status %d\n", static_cast<unsigned long long>(most), status);
  // [host]
  std::uint64_t expected = 0;
  for (std::uint32_t leaf = 729; leaf < 2 * 729; ++leaf)
    for (std::uint32_t i = 0; i < 32; ++i)
      expected = std::max<std::uint64_t>(expected, (leaf * 32 + i) * 2654435761u >> 12);
  return most == expected && status == -EDOM ? 0 : 1;
}
