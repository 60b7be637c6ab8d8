// Outputs whose memory the function allocates on the device have what it asked for, wherever they
// go.
#include <string>
#include <vector>

#include "flow/heap_functions.hpp"
#include "grosr/alloc/heap.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using testing::scaled;

GROSR_DEVICE_SUITE(heap_outputs);

TEST_P(heap_outputs, have_what_the_function_asked_for) {
  counting_graph c(where());
  for (const std::size_t n : {1ul, 0ul, 2ul, 100ul, words_a_slab, words_a_slab + 1, 0ul, 7ul}) {
    c.push(n, n);
    const datablock b = c.to->pull();
    EXPECT_EQ(b.count(), n);
    EXPECT_EQ(elements_of(b), numbers(static_cast<word>(n), n));
  }
}

TEST_P(heap_outputs, are_of_streams_whose_kernels_share_them) {
  executor e(on(where()));
  graph g(e, {.heap_bytes = 16 * slab});
  const node n = g.on_stream("n", count_up_in_stream, counting_ports());
  const auto from = g.source<word>(n["a"]);
  const auto to = g.sink<word>(n["o"]);
  g.compile();
  for (const std::size_t n : {0ul, 1ul, 3000ul, 3 * words_a_slab}) {
    from.push(std::vector<word>{5, static_cast<word>(n)});
    EXPECT_EQ(to.pull_elements(), numbers(5, n));
  }
}

TEST_P(heap_outputs, may_have_all_that_the_template_says_and_no_more) {
  executor e(on(where()));
  graph g(e, {.name = "g", .heap_bytes = 16 * slab});
  const node n =
      g.kernel("n", count_up{}, {{"a", asked()}, {"o", block_template::variable<word>(1000)}});
  const auto from = g.source<word>(n["a"]);
  const auto to = g.sink<word>(n["o"]);
  g.compile();
  from.push(std::vector<word>{3, 1000});
  EXPECT_EQ(to.pull_elements(), numbers(3, 1000));
  from.push(std::vector<word>{3, 1001});
  expect_error([&] { to.pull(); },
               "graph 'g': node 'n' failed in run 2: port 'o': 1001 elements were allocated for a "
               "block of ");
}

TEST_P(heap_outputs, are_in_the_plan) {
  executor e(on(where()));
  graph g(e, {.heap_bytes = 16 * slab - 5});
  const node n = g.kernel("n", count_up{}, counting_ports());
  g.source<word>(n["a"]);
  g.sink<word>(n["o"]);
  const plan& p = g.compile();
  EXPECT_NE(p.text().find("heap: 1.00 MiB on each device"), std::string::npos) << p.text();
  EXPECT_NE(p.text().find(", from the heap"), std::string::npos) << p.text();
  EXPECT_GE(p.bytes(1), 16 * slab);
  EXPECT_LT(p.bytes(1), 17 * slab);
  EXPECT_LT(p.bytes(0), slab);
}

TEST_P(heap_outputs, that_nobody_allocates_are_empty) {
  counting_graph c(where(), {}, count_up{0});
  for (unsigned i = 0; i < 5; ++i) {
    c.push(1, 5);
    EXPECT_EQ(c.to->pull().count(), 0u);
  }
}

TEST_P(heap_outputs, that_are_allocated_twice_fail) {
  counting_graph c(where(), {.errors = on_error::go_on}, count_up{2});
  for (unsigned i = 1; i <= 5; ++i) {
    c.push(1, 5);
    c.g->wait();
    EXPECT_EQ(c.g->nodes()[0].failures, i);
  }
  EXPECT_NE(c.g->events()[0].find("port 'o': allocate() was called 2 times in one run"),
            std::string::npos)
      << c.g->events()[0];
  EXPECT_EQ(c.g->heap_use(where()).live, 0u);
}

TEST_P(heap_outputs, go_on_without_copies) {
  executor e(on(where()));
  graph g(e, {.heap_bytes = 16 * slab});
  const node n = g.kernel("n", count_up{}, counting_ports());
  const node in_place = g.kernel("in_place", add_in_place{10}, {{"a", some()}});
  const node last =
      g.kernel("last", spend_time{}, {{"a", some()}, {"b", block_template::of<word>(1)}});
  g.connect(n["o"], in_place["a"]);
  g.connect(in_place["a"], last["a"]);
  const auto from = g.source<word>(n["a"]);
  const auto to = g.sink<word>(last["b"]);
  g.compile();
  for (word round = 1; round < 20; ++round) {
    from.push(std::vector<word>{1000, round * 30});
    EXPECT_EQ(to.pull_elements()[0], 1009 + round * 30);
  }
  for (const block_channel_stats& c : g.channels())
    if (c.from == "n.o" || c.from == "in_place.a") {
      EXPECT_EQ(c.copies.copies, 0u) << c.from;
    }
}

TEST_P(heap_outputs, are_copied_where_others_change_them) {
  executor e(on(where()));
  graph g(e, {.heap_bytes = 32 * slab});
  const node n = g.kernel("n", count_up{}, counting_ports());
  const node changed = g.kernel("changed", add_in_place{10}, {{"a", some()}});
  const node on_host = g.host("on_host",
                              [](inout<word> a) {
                                for (word& x : a) x += 100;
                              },
                              {{"a", some()}});
  g.connect(n["o"], changed["a"]);
  g.connect(n["o"], on_host["a"]);
  const auto from = g.source<word>(n["a"]);
  const auto plain = g.sink<word>(n["o"]), by_device = g.sink<word>(changed["a"]),
             by_host = g.sink<word>(on_host["a"]);
  g.compile();
  for (const std::size_t count : {5ul, 0ul, 1ul, 700ul, 300ul}) {
    from.push(std::vector<word>{7, static_cast<word>(count)});
    EXPECT_EQ(by_device.pull_elements(), numbers(17, count));
    EXPECT_EQ(by_host.pull_elements(), numbers(107, count));
    EXPECT_EQ(plain.pull_elements(), numbers(7, count));
  }
  g.wait();
  EXPECT_EQ(g.heap_use(where()).live, 0u);
  EXPECT_LT(e.memory().bytes(1), most * sizeof(word) / 4);
}

/// Another block than that which the function allocated has room for more elements.
TEST_P(heap_outputs, may_become_longer_when_they_are_written_over) {
  counting_graph c(where());
  c.push(3, 10);
  datablock b = c.to->pull();
  b.set_count(1000);
  expect_error([&] { b.read<word>(); }, "nobody has written it");
  {
    const auto all = b.write<word>();
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<word>(5 + i);
  }
  simt::timeline t(where());
  { const device_access a = b.update(t, c.e.memory().space_of(where())); }
  EXPECT_EQ(elements_of(b), numbers(5, 1000));
}

TEST_P(heap_outputs, come_beside_resident_nodes) {
  executor e(on(where()));
  graph g(e, {.heap_bytes = 8 * slab});
  const node stays = g.resident("stays", times{2}, {{"a", asked()}, {"b", asked()}});
  const node n = g.kernel("n", count_up{}, counting_ports());
  g.connect(stays["b"], n["a"]);
  const auto from = g.source<word>(stays["a"]);
  const auto to = g.sink<word>(n["o"]);
  g.compile();
  for (word i = 0; i < 40; ++i) {
    from.push(std::vector<word>{i, i * 300});
    EXPECT_EQ(to.pull_elements(), numbers(2 * i, std::size_t{i} * 600));
  }
  g.wait();
  EXPECT_EQ(g.heap_use(where()).live, 0u);
}

struct two_outputs {
  GROSR_DEVICE void operator()(point p, in<word> a, heap_out<word> odd, out<word> sum,
                               heap_out<unsigned char> even) const {
    if (p.index != 0) return;
    std::size_t odds = 0;
    for (const word x : a) odds += x % 2;
    word* const to = odd.allocate(odds);
    unsigned char* const bytes = even.allocate(a.count - odds);
    sum[0] = 0;
    std::size_t k = 0, m = 0;
    for (const word x : a) {
      if (x % 2 == 1 && to != nullptr) to[k++] = x;
      if (x % 2 == 0 && bytes != nullptr) bytes[m++] = static_cast<unsigned char>(x);
      sum[0] += x;
    }
  }
};

TEST_P(heap_outputs, may_be_several_beside_others) {
  executor_options o = on(where(), 0);
  executor e(o);
  graph g(e, {.heap_bytes = 64 * slab});
  const node n = g.kernel("n", two_outputs{},
                          {{"a", block_template::variable<word>(100)},
                           {"odd", some()},
                           {"sum", block_template::of<word>(1)},
                           {"even", block_template::bytes(most)}});
  const auto from = g.source<word>(n["a"]);
  const auto odd = g.sink<word>(n["odd"]), sum = g.sink<word>(n["sum"]);
  const auto even = g.sink<unsigned char>(n["even"]);
  g.compile();
  for (word round = 0; round < 50; ++round) {
    std::vector<word> given, odds;
    std::vector<unsigned char> evens;
    word all = 0;
    for (word i = 0; i < round; ++i) {
      const word x = (i * i + round) % 91;
      given.push_back(x);
      all += x;
      if (x % 2 == 1)
        odds.push_back(x);
      else
        evens.push_back(static_cast<unsigned char>(x));
    }
    from.push(given);
    EXPECT_EQ(odd.pull_elements(), odds);
    EXPECT_EQ(sum.pull_elements()[0], all);
    EXPECT_EQ(even.pull_elements(), evens);
  }
  g.wait();
  EXPECT_EQ(g.heap_use(where()).live, 0u);
}

TEST_P(heap_outputs, are_refused_where_they_cannot_be) {
  executor e(on(where()));
  graph g(e, {.name = "g"});
  const auto ports = [&](const block_template& t, const std::string& count) {
    return std::vector<port>{{"a", asked()}, {.name = "o", .shape = t, .count_port = count}};
  };
  expect_error([&] { g.kernel("x", count_up{}, ports(block_template::of<word>(4), "")); },
               "port 'x.o': its function allocates as many elements as there are");
  expect_error([&] { g.kernel("x", count_up{}, ports(some(), "a")); }, "leave count_port empty");
  const node n = g.kernel("n", count_up{}, counting_ports());
  expect_error([&] { g.also_host(n, [](in<word>, out<word>) {}); },
               "port 'o' has its memory from the heap of a device");
  g.source<word>(n["a"]);
  g.sink<word>(n["o"]);
  expect_error([&] { g.compile(); },
               "graph 'g': output n.o is allocated from the graph's heap, and it has none; set "
               "graph_options::heap_bytes");
  expect_error([&] { g.heap_use(where()); }, "graph 'g': what its heap holds was asked for");
  graph small(e, {.heap_bytes = 100});
  const node m = small.kernel("m", count_up{}, counting_ports());
  small.source<word>(m["a"]);
  small.sink<word>(m["o"]);
  expect_error([&] { small.compile(); },
               "output m.o is allocated from the graph's heap, and it has 100 bytes; set "
               "graph_options::heap_bytes");
}

}  // namespace
}  // namespace grosr::flow
