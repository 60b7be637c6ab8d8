// Outputs that functions allocate, where a graph has several devices.
#include <cstdlib>
#include <vector>

#include "flow/heap_functions.hpp"
#include "grosr/alloc/heap.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using testing::scaled;

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
