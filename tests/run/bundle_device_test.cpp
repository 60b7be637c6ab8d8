// Single tasks that one warp takes together: each runs once, and its ticket says of it alone.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>
#include <vector>

#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(bundle);

/// Counts itself; some fail, some start another one.
template <grosr::width W, unsigned Bytes>
struct single {
  static constexpr grosr::width width = W;
  std::uint32_t *cells, i;
  bool fails, starts;
  unsigned char rest[Bytes - 16];

  GROSR_DEVICE int operator()(auto& context) const {
    if (context.rank() != 0) return 0;
    for (unsigned char b : rest)
      if (b != static_cast<unsigned char>(i)) return -EINVAL;
    simt::atomic_ref<std::uint32_t>(cells[i]).fetch_add(1, simt::relaxed);
    if (starts) {
      single next = *this;
      next.starts = next.fails = false;
      context.spawn(next);
    }
    return fails ? -EIO : 0;
  }
};
using small_lane = single<width::lane, 24>;
using large_lane = single<width::lane, 64>;
using warp_wide = single<width::warp, 24>;
using block_wide = single<width::block, 24>;
using singles = runtime<small_lane, large_lane, warp_wide, block_wide>;

template <class Task>
Task make_single(std::uint32_t* cells, std::uint32_t i) {
  Task t{cells, i, i % 7 == 3, i % 11 == 5, {}};
  for (unsigned char& b : t.rest) b = static_cast<unsigned char>(i);
  return t;
}

// Threads submit all types at all levels, in stretches of one type, and wait for windows of
// tickets.
TEST_P(bundle, tells_of_each_task) {
  constexpr unsigned threads = 3, window = 50;
  const auto each = static_cast<std::uint32_t>(scaled(where().is_cuda() ? 20'000 : 2'000, 200));
  auto& cells = keep<std::uint32_t>(threads * each);
  singles rt(where(), small_options());
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      std::vector<ticket> tickets(window);
      for (std::uint32_t k = 0; k < each + window; ++k) {
        ticket& at = tickets[k % window];
        if (k >= window) {
          at.wait();
          EXPECT_EQ(at.failed(), (t * each + k - window) % 7 == 3);
        }
        if (k >= each) continue;
        const std::uint32_t i = t * each + k;
        const auto level = static_cast<priority>(k / 500 % priority_levels);
        switch (k / 40 % 8) {
          case 1:
            at = rt.submit(make_single<large_lane>(cells.data(), i), level);
            break;
          case 3:
            at = rt.submit(make_single<warp_wide>(cells.data(), i), level);
            break;
          case 5:
            at = rt.submit(make_single<block_wide>(cells.data(), i), level);
            break;
          default:
            at = rt.submit(make_single<small_lane>(cells.data(), i), level);
        }
      }
    });
  for (auto& t : all) t.join();
  rt.wait_all();
  const auto got = contents(cells);
  for (std::uint32_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], i % 11 == 5 ? 2u : 1u) << "task " << i;
  EXPECT_EQ(rt.stats().submitted, threads * each);
}

struct count_one {
  std::uint32_t* ran;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t>(*ran).fetch_add(1, simt::relaxed);
  }
};

/// No run is long, whatever the machine does meanwhile.
struct sees_short_runs : run::default_policy {
  static constexpr std::uint64_t bundle_cycles = ~std::uint64_t{0};
};

// Short ones come together: far fewer runs than tasks.
TEST_P(bundle, takes_short_tasks_together) {
  basic_runtime<sees_short_runs, count_one> rt(where(), small_options());
  auto& ran = keep<std::uint32_t>(1);
  const std::uint32_t n = 10'000;
  for (std::uint32_t i = 0; i < n; ++i) rt.submit(count_one{ran.data()});
  rt.wait_all();
  EXPECT_EQ(contents(ran)[0], n);
  rt.park();  // workers tell their counts when they leave
  EXPECT_LT(rt.stats().batches, n / 2);
}

// A type that was never seen to be short is taken one at a time: no ticket waits for another's
// task.
TEST_P(bundle, lets_no_ticket_wait_for_a_long_task) {
  auto& open = keep<std::uint32_t>(2, simt::space::pinned);
  auto& passed = keep<std::uint32_t>(1);
  std::atomic_ref(open[1]).store(1);
  for (std::uint32_t turn = 0; turn < scaled(20, 3); ++turn) {
    runtime<gated> rt(where(), small_options());
    std::atomic_ref(open[0]).store(0);
    const ticket closed = rt.submit(gated{open.data(), passed.data()});
    std::vector<ticket> others;
    for (unsigned i = 0; i < 40; ++i)
      others.push_back(rt.submit(gated{open.data() + 1, passed.data()}));
    for (const ticket& t : others) ASSERT_TRUE(t.wait_for(10s)) << "turn " << turn;
    EXPECT_FALSE(closed.done());
    std::atomic_ref(open[0]).store(1);
    closed.wait();
    EXPECT_EQ(contents(passed)[0], 41 * (turn + 1));
  }
}

}  // namespace
}  // namespace grosr::testing
