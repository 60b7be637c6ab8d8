// Random graphs on hosts and devices, by every policy, with and without stretches and runs that
// overlap: they do what plain calls do.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "flow/functions.hpp"
#include "support/devices.hpp"
#include "support/scale.hpp"

namespace grosr::flow {
namespace {

using namespace tested;
using testing::scaled;

GROSR_DEVICE_SUITE(random_graphs);

/// A random graph without cycles, and what it does to numbers.
struct drawn_graph {
  struct member {
    int kind;  // 0: times on the device, resident or not, 1: sum of two there, 2: in place there,
               // 3 to 5: on the host
    word constant;
    unsigned a, b;
  };
  std::vector<member> members;
  unsigned inputs;

  std::vector<std::vector<word>> plain(const std::vector<std::vector<word>>& given) const {
    std::vector<std::vector<word>> all = given;
    for (const member& m : members) {
      std::vector<word> r = all[m.a];
      for (std::size_t i = 0; i < r.size(); ++i)
        r[i] = m.kind % 3 == 0   ? r[i] * m.constant
               : m.kind % 3 == 1 ? r[i] + all[m.b][i]
                                 : r[i] + m.constant;
      all.push_back(std::move(r));
    }
    return all;
  }
};

drawn_graph draw(std::mt19937& random) {
  drawn_graph d;
  d.inputs = 1 + random() % 3;
  const unsigned kinds = random() % 2 != 0 ? 3 : 6;  // on the device alone, or on both
  const unsigned size = 2 + random() % 12;
  for (unsigned i = 0; i < size; ++i) {
    const unsigned there = d.inputs + i;
    // Rather of the last ones, so that it gets deep.
    const auto pick = [&] {
      return random() % 2 != 0 ? there - 1 : static_cast<unsigned>(random() % there);
    };
    d.members.push_back({static_cast<int>(random() % kinds), static_cast<word>(random() % 100 + 1),
                         pick(), pick()});
  }
  return d;
}

TEST_P(random_graphs, do_what_plain_calls_do) {
  const std::uint64_t graphs = scaled(60, 8);
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const drawn_graph d = draw(random);
    executor_options o = on(where(), random() % 4);
    o.policy = executor::policies()[random() % 4];
    o.depth = 1 + random() % 6;
    executor e(o);
    graph g(e, {.stretches = random() % 4 != 0,
                .runs_in_flight = static_cast<unsigned>(random() % 2 == 0 ? 1 : 1 + random() % 8)});
    constexpr std::size_t length = 37;
    const auto t = block_template::of<word>(length);
    // Inputs are functions that pass on, so that each may feed many.
    std::vector<port_ref> made;
    std::vector<source<word>> from;
    const auto options = [&] {
      return channel_options{static_cast<unsigned>(random() % 3 != 0 ? 1 : 1 + random() % 4)};
    };
    for (unsigned i = 0; i < d.inputs; ++i) {
      const node in_ =
          g.kernel(std::string("in").append(std::to_string(i)), times{1}, {{"a", t}, {"b", t}});
      from.push_back(g.source<word>(in_["a"], options()));
      made.push_back(in_["b"]);
    }
    for (std::size_t i = 0; i < d.members.size(); ++i) {
      const auto& m = d.members[i];
      const std::string name = std::string("n").append(std::to_string(i));
      if (m.kind == 0 || m.kind == 3) {
        const word by = m.constant;
        const auto plain = [by](in<word> a, out<word> b) {
          for (std::size_t k = 0; k < a.count; ++k) b[k] = a[k] * by;
        };
        const bool stays = m.kind == 0 && random() % 4 == 0;
        const node x = stays         ? g.resident(name, times{by}, {{"a", t}, {"b", t}})
                       : m.kind == 0 ? g.kernel(name, times{by}, {{"a", t}, {"b", t}})
                                     : g.host(name, plain, {{"a", t}, {"b", t}});
        if (!stays && random() % 4 == 0) {  // the policy chooses, run by run
          if (m.kind == 0)
            g.also_host(x, plain);
          else
            g.also_kernel(x, times{by});
        }
        g.connect(made[m.a], x["a"], options());
        made.push_back(x["b"]);
      } else if (m.kind == 1 || m.kind == 4) {
        const node x = m.kind == 1 && random() % 4 == 0
                           ? g.resident(name, sum_of_two{}, {{"a", t}, {"b", t}, {"c", t}})
                       : m.kind == 1 ? g.kernel(name, sum_of_two{}, {{"a", t}, {"b", t}, {"c", t}})
                                     : g.host(name,
                                              [](in<word> a, in<word> b, out<word> c) {
                                                for (std::size_t k = 0; k < a.count; ++k)
                                                  c[k] = a[k] + b[k];
                                              },
                                              {{"a", t}, {"b", t}, {"c", t}});
        g.connect(made[m.a], x["a"], options());
        g.connect(made[m.b], x["b"], options());
        made.push_back(x["c"]);
      } else {
        const word what = m.constant;
        const node x = m.kind == 2 ? g.kernel(name, add_in_place{what}, {{"a", t}})
                                   : g.host(name,
                                            [what](inout<word> a) {
                                              for (word& v : a) v += what;
                                            },
                                            {{"a", t}});
        g.connect(made[m.a], x["a"], options());
        made.push_back(x["a"]);
      }
    }
    std::vector<bool> goes_on(made.size(), false);
    for (const auto& m : d.members) {
      goes_on[m.a] = true;
      if (m.kind % 3 == 1) goes_on[m.b] = true;
    }
    std::vector<sink<word>> to;
    std::vector<std::size_t> output;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (goes_on[i] && random() % 3 != 0) continue;
      to.push_back(g.sink<word>(made[i], options()));
      output.push_back(i);
    }
    g.compile();
    std::vector<std::size_t> reserved;
    for (space_number s = 0; s < 2; ++s) reserved.push_back(e.memory().bytes(s));
    const unsigned rounds = 12;
    std::vector<std::vector<std::vector<word>>> given, expected;
    for (unsigned r = 0; r < rounds; ++r) {
      std::vector<std::vector<word>> all;
      for (unsigned i = 0; i < d.inputs; ++i)
        all.push_back(numbers(static_cast<word>(random()), length));
      expected.push_back(d.plain(all));
      given.push_back(std::move(all));
    }
    // One thread pushes and pulls what it can, in any order.
    std::vector<unsigned> pushed(d.inputs), pulled(to.size());
    const std::size_t all = rounds * (d.inputs + to.size());
    for (std::size_t done = 0; done < all;) {
      const unsigned k = static_cast<unsigned>(random() % (d.inputs + to.size()));
      if (k < d.inputs) {
        if (pushed[k] == rounds) continue;
        datablock b = from[k].make();
        {
          const auto w = b.write<word>();
          std::copy(given[pushed[k]][k].begin(), given[pushed[k]][k].end(), w.begin());
        }
        if (!from[k].try_push(b)) {
          if (o.threads == 0) e.step();
          continue;
        }
        ++pushed[k];
      } else {
        const unsigned s = k - d.inputs;
        if (pulled[s] == rounds) continue;
        const datablock b = to[s].try_pull();
        if (!b) {
          if (o.threads == 0) e.step();
          continue;
        }
        const auto got = b.read<word>();
        ASSERT_TRUE(std::equal(got.begin(), got.end(), expected[pulled[s]][output[s]].begin()))
            << "graph " << seed << ", output " << output[s] << ", round " << pulled[s];
        ++pulled[s];
      }
      ++done;
    }
    g.wait();
    // Beside what the plan has, blocks that this thread held.
    for (space_number s = 0; s < 2; ++s)
      EXPECT_LE(e.memory().bytes(s), reserved[s] + 3 * 256) << "graph " << seed << ", memory " << s;
  }
}

}  // namespace
}  // namespace grosr::flow
