// A chain of forks of one child, each joined, runs from the worker's own memory
// (short_way_device_test.cpp); and what such a chain must leave to others.
#include <chrono>

#include "grosr/run/join.hpp"
#include "run/chains.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(short_way_of_forks);

/// Counts one up; or fails, where `fails` says so.
struct step {
  using result = std::uint32_t;
  std::uint32_t done, fails;
  GROSR_DEVICE int operator()(auto& context) const {
    if (fails != 0) return -EIO;
    context.give(done + 1);
    return 0;
  }
};

/// One that nobody looks at the result of.
struct idle_step {
  using result = void;
  GROSR_DEVICE void operator()(auto&) const {}
};

/// A link joins, and forks one step, and at every `every`-th one `aside` more; its continuation is
/// the next link.
struct fork_link {
  using result = std::uint32_t;
  std::uint32_t left, every, aside, fails, done;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (left == 0) {
      context.give(done);
      return 0;
    }
    auto& next = context.join(fork_link{left - 1, every, aside, fails, 0});
    context.fork(step{done, fails == left ? 1u : 0u}, &next.done);
    if (every != 0 && left % every == 0)
      for (std::uint32_t i = 0; i < aside; ++i) context.fork(idle_step{});
    return 0;
  }
};

using fork_runtime = basic_runtime<patient, step, idle_step, fork_link, says>;

TEST_P(short_way_of_forks, runs_every_link) {
  const auto n = static_cast<std::uint32_t>(scaled(where().is_cuda() ? 20'000 : 3'000, 300));
  fork_runtime rt(where(), small_options());
  auto plain = rt.fork(fork_link{n, 0, 0, 0, 0});
  EXPECT_EQ(plain.get(), n);
  rt.wait_all();
  rt.park();
  EXPECT_EQ(rt.stats().tasks, 2 * n + 1);
  EXPECT_EQ(rt.stats().joined, n);
  EXPECT_EQ(rt.stats().failed, 0u);
}

TEST_P(short_way_of_forks, leaves_what_does_not_fit_to_others) {
  const auto n = static_cast<std::uint32_t>(scaled(600, 60));
  fork_runtime rt(where(), small_options());
  for (const std::uint32_t every : {1u, 2u, 7u})
    for (const std::uint32_t aside : {1u, 31u, 40u, 70u})
      EXPECT_EQ(rt.fork(fork_link{n, every, aside, 0, 0}).get(), n) << every << " " << aside;
}

TEST_P(short_way_of_forks, tells_of_failures) {
  fork_runtime rt(where(), small_options());
  for (const std::uint32_t at : {1u, 2u, 50u, 100u})
    EXPECT_EQ(rt.fork(fork_link{100, 0, 0, at, 0}).status(), -EIO) << at;
}

TEST_P(short_way_of_forks, runs_beside_others) {
  auto& said = keep<std::uint32_t>(1);
  fork_runtime rt(where(), small_options());
  const auto n = static_cast<std::uint32_t>(scaled(where().is_cuda() ? 50'000 : 5'000, 500));
  std::vector<future<std::uint32_t>> all;
  for (int i = 0; i < 8; ++i) all.push_back(rt.fork(fork_link{n, 0, 0, 0, 0}));
  for (const priority p : {priority::low, priority::normal, priority::high, priority::urgent})
    EXPECT_TRUE(rt.submit(says{said.data()}, p).wait_for(20s));
  rt.park();
  for (auto& f : all) EXPECT_EQ(f.get(), n);
  rt.wait_all();
  EXPECT_EQ(contents(said)[0], 4u);
}

TEST_P(short_way_of_forks, runs_every_link_under_every_schedule) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules are of the host backend";
  for_seeds(300, [&] {
    runtime_options o = small_options();
    o.sms = 2;
    fork_runtime rt(where(), o);
    auto a = rt.fork(fork_link{30, 0, 0, 0, 0});
    auto b = rt.fork(fork_link{12, 3, 5, 0, 0});
    auto c = rt.fork(fork_link{9, 2, 1, 4, 0});
    EXPECT_EQ(a.get(), 30u);
    EXPECT_EQ(b.get(), 12u);
    EXPECT_EQ(c.status(), -EIO);
  });
}

}  // namespace
}  // namespace grosr::testing
