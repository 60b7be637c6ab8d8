// The memory of outputs that functions allocate: what a full heap does, and when blocks go back.
#include <optional>
#include <stdexcept>
#include <vector>

#include "flow/heap_functions.hpp"
#include "grosr/alloc/heap.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using testing::scaled;

GROSR_DEVICE_SUITE(heap_outputs_memory);

struct read_slowly {
  const word* from;
  word* to;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    word x = 0;
    for (unsigned i = 0; i < 1'000'000; ++i) x = x * 1664525 + from[i % 1000];
    *to = x;
  }
};

TEST_P(heap_outputs_memory, take_no_memory_for_all_of_the_template) {
  counting_graph c(where());
  EXPECT_LT(c.e.memory().bytes(1), most * sizeof(word));
  for (std::size_t n = 0; n < 30; ++n) {
    c.push(n, n * 100);
    EXPECT_EQ(c.to->pull_elements(), numbers(static_cast<word>(n), n * 100));
  }
  EXPECT_LT(c.e.memory().bytes(0), most * sizeof(word) / 8);
  EXPECT_LT(c.e.memory().bytes(1), most * sizeof(word) / 8);
  const std::size_t before = c.e.memory().bytes(0);
  c.g.reset();
  EXPECT_LT(c.e.memory().bytes(0), before);
  EXPECT_EQ(c.e.memory().idle_buffers(0), 0u);
}

TEST_P(heap_outputs_memory, of_a_full_heap_fail) {
  counting_graph c(where(), {.heap_bytes = 8 * slab});
  c.push(0, 3 * words_a_slab);
  const datablock held = c.to->pull();
  c.push(0, 6 * words_a_slab);
  expect_error([&] { c.to->pull(); },
               "graph 'g': node 'n' failed in run 2: port 'o': 393216 bytes were allocated for "
               "98304 elements, and the graph's heap on " +
                   where().name() +
                   " has no room for them: it has 524288 bytes, of which other blocks have 196608");
  EXPECT_EQ(elements_of(held), numbers(0, 3 * words_a_slab));
}

TEST_P(heap_outputs_memory, that_are_larger_than_the_heap_fail) {
  counting_graph c(where(), {.heap_bytes = 2 * slab});
  c.push(0, 2 * words_a_slab);  // all of it
  EXPECT_EQ(c.to->pull().count(), 2 * words_a_slab);
  c.push(0, 2 * words_a_slab + 1);
  expect_error([&] { c.to->pull(); },
               "graph 'g': node 'n' failed in run 2: port 'o': 131076 bytes were allocated for "
               "32769 elements, and the graph's heap on " +
                   where().name() + " has 131072 bytes in all; raise graph_options::heap_bytes");
}

TEST_P(heap_outputs_memory, of_a_full_heap_are_missing_until_blocks_have_gone) {
  counting_graph c(where(), {.errors = on_error::go_on, .heap_bytes = 8 * slab});
  for (unsigned round = 0; round < 20; ++round) {
    c.push(round, 3 * words_a_slab);
    c.push(round + 1, 3 * words_a_slab);
    datablock a = c.to->pull(), b = c.to->pull();
    c.push(0, 3 * words_a_slab);
    c.g->wait();
    EXPECT_FALSE(c.to->try_pull());
    EXPECT_EQ(c.g->nodes()[0].failures, round + 1);
    EXPECT_EQ(elements_of(a), numbers(round, 3 * words_a_slab));
    a = b = {};
    c.push(9, 6 * words_a_slab);
    EXPECT_EQ(c.to->pull_elements(), numbers(9, 6 * words_a_slab));
  }
  c.g->wait();
  const heap_report r = c.g->heap_use(where());
  EXPECT_EQ(r.live, 0u);
  EXPECT_EQ(r.failures, 20u);
}

TEST_P(heap_outputs_memory, of_functions_that_throw_are_given_back) {
  executor e(on(where()));
  graph g(e, {.errors = on_error::go_on, .heap_bytes = 4 * slab});
  const node n = g.on_stream(
      "n",
      [round = 0](simt::stream& s, in<word> a, heap_out<word> o) mutable {
        count_up_in_stream(s, a, o);
        if (++round % 2 == 1) throw std::runtime_error("odd");
      },
      counting_ports());
  const auto from = g.source<word>(n["a"]);
  const auto to = g.sink<word>(n["o"]);
  g.compile();
  for (word round = 0; round < 20; ++round) {
    from.push(std::vector<word>{round, 2 * words_a_slab});
    if (round % 2 == 0)
      g.wait();
    else
      EXPECT_EQ(to.pull_elements(), numbers(round, 2 * words_a_slab));
  }
  g.wait();
  EXPECT_EQ(g.nodes()[0].failures, 10u);
  EXPECT_EQ(g.heap_use(where()).live, 0u);
}

TEST_P(heap_outputs_memory, leave_nothing_behind) {
  counting_graph c(where(), {}, {}, 4);
  const std::uint64_t runs = scaled(10'000, 200);
  std::optional<std::size_t> high_water;
  for (std::uint64_t i = 0; i < runs;) {
    for (unsigned k = 0; k < 4; ++k) c.push(i + k, (i + k) % 40);
    for (unsigned k = 0; k < 4; ++k, ++i)
      ASSERT_EQ(c.to->pull_elements(), numbers(static_cast<word>(i), i % 40));
    if (i % (runs / 10) >= 4) continue;
    c.g->wait();
    const heap_report r = c.g->heap_use(where());
    EXPECT_EQ(r.live, 0u);
    EXPECT_EQ(r.failures + r.foreign_frees + r.double_frees, 0u);
    if (!high_water) high_water = r.high_water;
    EXPECT_LE(r.high_water, *high_water + 2 * slab);
  }
}

TEST_P(heap_outputs_memory, go_back_many_at_once) {
  counting_graph c(where(), {.heap_bytes = 64 * slab});
  for (int round = 0; round < 2; ++round) {
    std::vector<datablock> held;
    for (word i = 0; i < 600; ++i) {
      c.push(i, 3);
      held.push_back(c.to->pull());
    }
    EXPECT_EQ(elements_of(held.front()), numbers(0, 3));
    EXPECT_EQ(elements_of(held.back()), numbers(599, 3));
    EXPECT_EQ(c.g->heap_use(where()).live, 600u);
    held.clear();
    EXPECT_EQ(c.g->heap_use(where()).live, 0u);
  }
}

/// Also what is still read on the device, where nobody has waited for that.
TEST_P(heap_outputs_memory, have_gone_when_the_heap_says_what_it_holds) {
  executor e(on(where()));
  graph g(e, {.heap_bytes = 64 * slab});
  const node n = g.kernel("n", count_up{}, counting_ports());
  const auto from = g.source<word>(n["a"]);
  const auto to = g.sink<word>(n["o"]);
  g.compile();
  simt::timeline reads(where());
  const simt::buffer<word> sum(where(), simt::space::device, 1);
  for (int round = 0; round < 3; ++round) {
    from.push(std::vector<word>{7, 1000});
    datablock b = to.pull();
    simt::stream_point read;
    {
      const device_access a = b.read(reads, e.memory().space_of(where()));
      simt::launch(reads.queue(), {1, 32}, read_slowly{static_cast<word*>(a.data()), sum.data()});
      read = reads.mark();
    }
    b = {};
    EXPECT_EQ(g.heap_use(where()).live, 0u);
    EXPECT_TRUE(read.has_happened());
  }
}

TEST_P(heap_outputs_memory, outlive_their_graph_and_executor) {
  datablock held, later;
  {
    counting_graph c(where(), {.heap_bytes = 32 * slab}, {}, 3);
    for (word i = 0; i < 5; ++i) c.push(i, 50'000);
    held = c.to->pull();
    later = c.to->pull();
    c.g.reset();
    EXPECT_EQ(elements_of(held), numbers(0, 50'000));
    held = {};
    c.e.memory().free_borrowed();
  }
  EXPECT_EQ(elements_of(later), numbers(1, 50'000));
  for (word& x : later.update<word>()) x += 1;
  EXPECT_EQ(elements_of(later), numbers(2, 50'000));
}

TEST_P(heap_outputs_memory, that_are_dropped_go_back) {
  executor e(on(where()));
  graph g(e, {.heap_bytes = 6 * slab});
  const node n = g.kernel("n", count_up{}, counting_ports());
  const auto from = g.source<word>(n["a"]);
  const auto to = g.sink<word>(n["o"], {.full = when_full::latest});
  g.compile();
  for (word i = 0; i < 50; ++i) from.push(std::vector<word>{i, words_a_slab});
  g.wait();
  EXPECT_EQ(to.pull_elements(), numbers(49, words_a_slab));
  EXPECT_EQ(g.heap_use(where()).live, 0u);
}

/// Blocks of three slabs, of which at most five are somewhere in the graph, through a heap for six:
/// those that have gone are still read on the device, in another stream, which is slower.
TEST_P(heap_outputs_memory, have_the_memory_of_those_that_have_gone) {
  executor_options o = on(where());
  o.depth = 32;
  executor e(o);
  graph g(e, {.heap_bytes = 18 * slab});
  const node n = g.kernel("n", count_up{}, counting_ports());
  const auto one = block_template::of<word>(1);
  const node first = g.kernel("first", spend_time{}, {{"a", some()}, {"b", one}});
  const node second = g.kernel("second", spend_time{1'000'000}, {{"a", some()}, {"b", one}});
  g.connect(n["o"], first["a"]);
  g.connect(n["o"], second["a"]);
  const auto from = g.source<word>(n["a"], {.capacity = 200});
  const auto a = g.sink<word>(first["b"], {.capacity = 200}),
             b = g.sink<word>(second["b"], {.capacity = 200});
  g.compile();
  const word runs = static_cast<word>(scaled(100, 30)), count = 2 * words_a_slab + 5;
  for (word i = 0; i < runs; ++i) from.push(std::vector<word>{i, count});
  for (word i = 0; i < runs; ++i) {
    EXPECT_EQ(a.pull_elements()[0], i + count - 1);
    EXPECT_EQ(b.pull_elements()[0], i + count - 1);
  }
}

TEST_P(heap_outputs_memory, of_a_graph_that_ends_are_lost) {
  executor e(on(where()));
  for (int i = 0; i < 20; ++i) {
    graph g(e, {.heap_bytes = 8 * slab});
    const node n = g.kernel("n", count_up{}, counting_ports());
    const auto from = g.source<word>(n["a"], {.capacity = 4});
    const auto to = g.sink<word>(n["o"]);
    g.compile();
    for (word k = 0; k < 4; ++k) from.push(std::vector<word>{k, words_a_slab});
    if (i % 2 == 0) to.pull();
  }
}

}  // namespace
}  // namespace grosr::flow
