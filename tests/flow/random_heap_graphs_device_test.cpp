// Random graphs whose functions allocate what they write: they do what plain calls do, and leave
// nothing in the heap.
#include <algorithm>
#include <optional>
#include <random>
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

GROSR_DEVICE_SUITE(random_heap_graphs);

constexpr std::size_t most_drawn = 4096;

struct repeat {
  word times;
  GROSR_DEVICE void operator()(point p, in<word> a, heap_out<word> o) const {
    if (p.index != 0) return;
    const std::size_t wanted = a.count * times, n = wanted < most_drawn ? wanted : most_drawn;
    word* const e = o.allocate(n);
    if (e == nullptr) return;
    for (std::size_t i = 0; i < n; ++i) e[i] = a[i / times];
  }
};
struct keep_odd {
  GROSR_DEVICE void operator()(point p, in<word> a, heap_out<word> o) const {
    if (p.index != 0) return;
    std::size_t n = 0;
    for (const word x : a) n += x % 2;
    word* e = o.allocate(n);
    if (e == nullptr) return;
    for (const word x : a)
      if (x % 2 == 1) *e++ = x;
  }
};

/// A random tree, and what comes out of each of its members.
struct drawn_tree {
  struct member {
    unsigned kind;  // repeat, keep odd ones; change in place on the device, on the host
    unsigned from;  // a member before
    word constant;
  };
  std::vector<member> members;

  explicit drawn_tree(std::mt19937& random) {
    members.push_back({0, 0, 1});
    for (std::size_t n = 2 + random() % 10; members.size() < n;) {
      const auto there = static_cast<unsigned>(members.size());
      members.push_back({static_cast<unsigned>(random() % 4),
                         random() % 2 == 0 ? there - 1 : static_cast<unsigned>(random() % there),
                         static_cast<word>(random() % 4)});
    }
  }

  std::vector<std::vector<word>> plain(const std::vector<word>& given) const {
    std::vector<std::vector<word>> all;
    for (const member& m : members) {
      const std::vector<word>& from = all.empty() ? given : all[m.from];
      std::vector<word> to;
      for (const word x : from) {
        for (word k = 0; m.kind == 0 && k < m.constant; ++k) to.push_back(x);
        if (m.kind == 1 && x % 2 == 1) to.push_back(x);
        if (m.kind >= 2) to.push_back(x + m.constant);
      }
      to.resize(std::min(to.size(), most_drawn));
      all.push_back(std::move(to));
    }
    return all;
  }
};

TEST_P(random_heap_graphs, do_what_plain_calls_do) {
  const std::uint64_t graphs = scaled(60, 4);
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const drawn_tree d(random);
    executor_options o = on(where(), random() % 4);
    o.policy = executor::policies()[random() % 4];
    o.depth = 1 + random() % 6;
    executor e(o);
    graph g(e, {.runs_in_flight = 1 + static_cast<unsigned>(random() % 3),
                .heap_bytes = std::size_t{16} << 20});
    const auto t = block_template::variable<word>(most_drawn);
    const auto options = [&] { return channel_options{static_cast<unsigned>(1 + random() % 3)}; };
    std::optional<source<word>> from;
    std::vector<port_ref> made;
    for (std::size_t i = 0; i < d.members.size(); ++i) {
      const auto& m = d.members[i];
      const std::string name = std::string("n").append(std::to_string(i));
      const node n = m.kind == 0   ? g.kernel(name, repeat{m.constant}, {{"a", t}, {"o", t}})
                     : m.kind == 1 ? g.kernel(name, keep_odd{}, {{"a", t}, {"o", t}})
                     : m.kind == 2 ? g.kernel(name, add_in_place{m.constant}, {{"a", t}})
                                   : g.host(name,
                                            [what = m.constant](inout<word> a) {
                                              for (word& x : a) x += what;
                                            },
                                            {{"a", t}});
      if (i == 0)
        from.emplace(g.source<word>(n["a"], options()));
      else
        g.connect(made[m.from], n["a"], options());
      made.push_back(m.kind < 2 ? n["o"] : n["a"]);
    }
    std::vector<sink<word>> to;
    for (const port_ref& p : made) to.push_back(g.sink<word>(p, options()));
    g.compile();
    constexpr unsigned rounds = 10;
    std::vector<std::vector<word>> given;
    std::vector<std::vector<std::vector<word>>> expected;
    for (unsigned r = 0; r < rounds; ++r) {
      given.push_back(numbers(static_cast<word>(random()), random() % 600));
      expected.push_back(d.plain(given.back()));
    }
    unsigned pushed = 0;
    std::vector<unsigned> pulled(to.size(), 0);
    std::vector<datablock> held(5);  // some of those that came last
    for (std::size_t done = 0; done < rounds * (to.size() + 1);) {
      const std::size_t s = random() % (to.size() + 1);
      if (s == to.size()) {
        if (pushed == rounds) continue;
        datablock b = from->make();
        b.set_count(given[pushed].size());
        std::copy(given[pushed].begin(), given[pushed].end(), b.write<word>().begin());
        if (from->try_push(b)) {
          ++pushed;
          ++done;
        } else if (o.threads == 0) {
          e.step();
        }
      } else if (const datablock b = to[s].try_pull()) {
        const auto got = b.read<word>();
        ASSERT_EQ(std::vector<word>(got.begin(), got.end()), expected[pulled[s]][s])
            << "graph " << seed << ", node " << s << ", round " << pulled[s];
        held[random() % held.size()] = b;
        ++pulled[s];
        ++done;
      } else if (o.threads == 0) {
        e.step();
      }
    }
    g.wait();
    held.clear();
    const heap_report r = g.heap_use(where());
    EXPECT_EQ(r.live, 0u) << "graph " << seed;
    EXPECT_EQ(r.failures + r.foreign_frees + r.double_frees, 0u) << "graph " << seed;
  }
}

}  // namespace
}  // namespace grosr::flow
