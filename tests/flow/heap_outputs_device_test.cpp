// Outputs whose memory the function allocates on the device.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "flow/functions.hpp"
#include "grosr/alloc/heap.hpp"
#include "grosr/flow/heap_out.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using testing::scaled;

GROSR_DEVICE_SUITE(heap_outputs);

constexpr std::size_t slab = 64 << 10, words_a_slab = slab / sizeof(word);
constexpr std::size_t most = 1 << 20;  // elements; four times what the heaps here have
block_template some() { return block_template::variable<word>(most); }
block_template asked() { return block_template::of<word>(2); }

/// Gets the first number, and how many there are to be.
struct count_up {
  unsigned calls = 1;
  GROSR_DEVICE void operator()(point p, in<word> a, heap_out<word> o) const {
    if (p.index != 0) return;
    word* e = nullptr;
    for (unsigned i = 0; i < calls; ++i) {
      word* const got = o.allocate(a[1]);
      if (i == 0) e = got;
    }
    if (e == nullptr) return;
    for (word i = 0; i < a[1]; ++i) e[i] = a[0] + i;
  }
};

struct allocate_numbers {
  in<word> a;
  heap_out<word> o;
  GROSR_DEVICE void operator()() const {
    if (simt::block_id() == 0 && simt::thread_id() == 0) o.allocate(a[1]);
  }
};
struct fill_numbers {
  in<word> a;
  heap_out<word> o;
  GROSR_DEVICE void operator()() const {
    word* const e = o.data();
    if (e == nullptr) return;
    const std::size_t threads = std::size_t{simt::grid_size()} * simt::block_size();
    for (std::size_t i = std::size_t{simt::block_id()} * simt::block_size() + simt::thread_id();
         i < o.count(); i += threads)
      e[i] = a[0] + static_cast<word>(i);
  }
};

void count_up_in_stream(simt::stream& s, in<word> a, heap_out<word> o) {
  simt::launch(s, {1, 32}, allocate_numbers{a, o});
  simt::launch(s, {2, 64}, fill_numbers{a, o});
}

/// Takes a while, and writes the last element that it got.
struct spend_time {
  unsigned steps = 1;
  GROSR_DEVICE void operator()(point p, in<word> a, out<word> b) const {
    word x = p.x;
    for (unsigned i = 0; i < steps; ++i) x = x * 1664525 + 1013904223;
    const word nearly_never = x == 0xdeadbeef ? 1 : 0;
    b[p.index] = nearly_never + (a.count == 0 ? 0 : a[a.count - 1]);
  }
};

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

const std::vector<port> counting_ports() { return {{"a", asked()}, {"o", some()}}; }

/// What counts up, from a source to a sink.
struct counting_graph {
  executor e;
  std::optional<graph> g;
  std::optional<source<word>> from;
  std::optional<sink<word>> to;

  explicit counting_graph(const device& d, graph_options o = {}, const count_up& f = {},
                          unsigned capacity = 1)
      : e(on(d)) {
    if (o.heap_bytes == 0) o.heap_bytes = 16 * slab;
    o.name = "g";
    g.emplace(e, o);
    const node n = g->kernel("n", f, counting_ports());
    from.emplace(g->source<word>(n["a"], {.capacity = capacity}));
    to.emplace(g->sink<word>(n["o"], {.capacity = capacity}));
    g->compile();
  }
  void push(std::size_t first, std::size_t count) {
    from->push(std::vector<word>{static_cast<word>(first), static_cast<word>(count)});
  }
};

std::vector<word> elements_of(const datablock& b) {
  const auto all = b.read<word>();
  return {all.begin(), all.end()};
}

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

TEST_P(heap_outputs, take_no_memory_for_all_of_the_template) {
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

TEST_P(heap_outputs, of_a_full_heap_fail) {
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

TEST_P(heap_outputs, that_are_larger_than_the_heap_fail) {
  counting_graph c(where(), {.heap_bytes = 2 * slab});
  c.push(0, 2 * words_a_slab);  // all of it
  EXPECT_EQ(c.to->pull().count(), 2 * words_a_slab);
  c.push(0, 2 * words_a_slab + 1);
  expect_error([&] { c.to->pull(); },
               "graph 'g': node 'n' failed in run 2: port 'o': 131076 bytes were allocated for "
               "32769 elements, and the graph's heap on " +
                   where().name() + " has 131072 bytes in all; raise graph_options::heap_bytes");
}

TEST_P(heap_outputs, of_a_full_heap_are_missing_until_blocks_have_gone) {
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

TEST_P(heap_outputs, of_functions_that_throw_are_given_back) {
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

TEST_P(heap_outputs, leave_nothing_behind) {
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

TEST_P(heap_outputs, go_back_many_at_once) {
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
TEST_P(heap_outputs, have_gone_when_the_heap_says_what_it_holds) {
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

TEST_P(heap_outputs, outlive_their_graph_and_executor) {
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

TEST_P(heap_outputs, that_are_dropped_go_back) {
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

/// Blocks of three slabs, of which at most five are somewhere in the graph, through a heap for six:
/// those that have gone are still read on the device, in another stream, which is slower.
TEST_P(heap_outputs, have_the_memory_of_those_that_have_gone) {
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

TEST_P(heap_outputs, of_a_graph_that_ends_are_lost) {
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

struct add_ends {
  GROSR_DEVICE void operator()(point, in<word> a, in<word> b, out<word> c) const {
    c[0] = a[a.count - 1] + b[b.count - 1];
  }
};

class heap_outputs_on_two_devices : public ::testing::Test {
 protected:
  void SetUp() override { setenv("GROSR_HOST_DEVICES", "2", 1); }
  void TearDown() override { unsetenv("GROSR_HOST_DEVICES"); }
};

TEST_F(heap_outputs_on_two_devices, go_from_one_to_the_other) {
  executor_options o;
  o.devices = {device("host:0"), device("host:1")};
  executor e(o);
  graph g(e, {.heap_bytes = 32 * slab});
  const node n = g.kernel("n", count_up{}, counting_ports());
  const node changed = g.kernel("changed", add_in_place{10}, {{"a", some()}});
  const node last =
      g.kernel("last", spend_time{}, {{"a", some()}, {"b", block_template::of<word>(1)}});
  g.connect(n["o"], changed["a"]);
  g.connect(changed["a"], last["a"]);
  const auto from = g.source<word>(n["a"], {.capacity = 4});
  const auto plain = g.sink<word>(n["o"], {.capacity = 4}), to = g.sink<word>(last["b"]);
  g.compile();
  const word rounds = static_cast<word>(scaled(300, 60));
  for (word i = 0; i < rounds; i += 3) {
    for (word k = i; k < i + 3; ++k) from.push(std::vector<word>{k, k % 7 * 90});
    for (word k = i; k < i + 3; ++k) {
      EXPECT_EQ(plain.pull_elements(), numbers(k, k % 7 * 90));
      const word x = to.pull_elements()[0];
      if (k % 7 != 0) {
        EXPECT_EQ(x, k + k % 7 * 90 + 9);
      }
    }
  }
  g.wait();
  for (const device& d : o.devices) EXPECT_EQ(g.heap_use(d).live, 0u);
}

TEST_F(heap_outputs_on_two_devices, draw_nodes_by_what_they_hold) {
  executor_options o;
  o.devices = {device("host:0"), device("host:1")};
  o.threads = 0;
  o.policy = "data_aware";
  executor e(o);
  graph g(e, {.heap_bytes = 32 * slab});
  const auto thousand = block_template::of<word>(1000), one = block_template::of<word>(1);
  const node few = g.kernel("few", count_up{}, counting_ports());
  const node more = g.kernel("more", times{2}, {{"a", thousand}, {"b", thousand}});
  const node last = g.kernel("last", add_ends{}, {{"a", some()}, {"b", thousand}, {"c", one}});
  g.connect(few["o"], last["a"]);
  g.connect(more["b"], last["b"]);
  const auto a = g.source<word>(few["a"]), b = g.source<word>(more["a"]);
  const auto to = g.sink<word>(last["c"]);
  g.compile();
  a.push(std::vector<word>{1, 5});
  b.push(numbers(0, 1000));
  EXPECT_EQ(to.pull_elements()[0], 5u + 2 * 999);
  for (const block_channel_stats& c : g.channels()) {
    if (c.from == "few.o") {
      EXPECT_EQ(c.copies.bytes, 5 * sizeof(word));
    }
    if (c.from == "more.b") {
      EXPECT_EQ(c.copies.copies, 0u);
    }
  }
}

}  // namespace
}  // namespace grosr::flow
