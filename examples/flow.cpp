// Functions push to functions through channels: numbers go their Collatz way, the odd ones and the
// even ones to functions of their own; the host hears of those that took long.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <grosr/grosr.hpp>

// [halve]
struct number {
  std::uint64_t value;
  std::uint32_t first, steps;
};

struct halve {  // serves even numbers: 32 lanes, and every one of them halves
  using element = number;
  grosr::channel<number> even, odd, arrived;
  GROSR_DEVICE void operator()(const number& n, auto& context) const {
    const number next{n.value / 2, n.first, n.steps + 1};
    if (next.value == 1)
      arrived.push(context, next);
    else
      (next.value % 2 == 0 ? even : odd).push(context, next);
  }
};
// [halve]

// [grow]
struct grow {  // serves odd ones
  using element = number;
  grosr::channel<number> even;
  GROSR_DEVICE void operator()(const number& n, auto& context) const {
    even.push(context, number{3 * n.value + 1, n.first, n.steps + 1});
  }
};

struct judge {  // serves those that have arrived
  using element = number;
  std::uint32_t patience;
  grosr::channel<number> slow;
  GROSR_DEVICE void operator()(const number& n, auto& context) const {
    if (n.steps > patience) slow.push(context, n);
  }
};
// [grow]

// [host]
int main() {
  grosr::element_graph<halve, grow, judge, grosr::on_host<number>> graph;
  auto even = graph.channel<number>({.capacity = 4096, .name = "even"});
  auto odd = graph.channel<number>({.capacity = 4096, .name = "odd"});
  auto arrived = graph.channel<number>({.name = "arrived"});
  auto slow = graph.channel<number>({.name = "slow"});
  graph.connect(even, halve{even, odd, arrived});
  graph.connect(odd, grow{even});
  graph.connect(arrived, judge{200, slow});
  std::atomic<std::uint32_t> count = 0, longest = 0;
  graph.connect(slow, [&](std::span<const number> some) {  // by a thread of the graph's
    for (const number& n : some) {
      ++count;
      if (n.steps > longest) longest = n.steps;
    }
  });

  std::vector<number> evens, odds;
  for (std::uint32_t n = 2; n <= 20'000; ++n) (n % 2 == 0 ? evens : odds).push_back({n, n, 0});
  graph.push(even, evens);
  graph.push(odd, odds);
  graph.wait();  // until nothing is left, in any channel
  // [host]
  std::uint32_t expected = 0, expected_longest = 0;
  for (std::uint32_t n = 2; n <= 20'000; ++n) {
    std::uint32_t steps = 0;
    for (std::uint64_t v = n; v != 1; v = v % 2 == 0 ? v / 2 : 3 * v + 1) ++steps;
    expected += steps > 200 ? 1 : 0;
    expected_longest = std::max(expected_longest, steps);
  }
  std::printf("%u numbers took more than 200 steps; the longest way has %u\n", count.load(),
              longest.load());
  for (const grosr::channel_stats& c : graph.stats())
    std::printf("  %-8s %9llu elements, batches %3.0f%% full\n", c.name.c_str(),
                static_cast<unsigned long long>(c.pushed + c.from_host),
                100.0 * static_cast<double>(c.pushed) / static_cast<double>(c.pushed + c.padded));
  return count == expected && longest == expected_longest ? 0 : 1;
}
