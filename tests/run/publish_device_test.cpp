// What a long task started begins before its end when it publishes it; it sees that others wait.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

template <width W>
struct short_one {
  static constexpr grosr::width width = W;
  std::uint32_t* ended;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == 0) simt::atomic_ref<std::uint32_t>(*ended).fetch_add(1, simt::relaxed);
  }
};

constexpr std::uint32_t short_ones = 3;  // fewer than a batch

template <width W, width Short = width::lane>
struct long_one {
  static constexpr grosr::width width = W;
  std::uint32_t* ended;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.rank() != 0) return 0;
    const std::uint64_t deadline = context.clock_ns() + 5'000'000'000;
    if (simt::wait_until([&] { return context.others_wait(); }, deadline, nullptr,
                         "idle workers") != simt::wait_result::ready)
      return -EAGAIN;
    for (std::uint32_t i = 0; i < short_ones; ++i) context.spawn(short_one<Short>{ended});
    context.publish();
    const auto done = [&] {
      return simt::atomic_ref<std::uint32_t>(*ended).load(simt::relaxed) == short_ones;
    };
    return simt::wait_until(done, deadline, nullptr, "what was published") ==
                   simt::wait_result::ready
               ? 0
               : -ETIMEDOUT;
  }
};

GROSR_RUNTIME_SUITE(publish);

template <width W, width Short = width::lane>
void publishes(device d, std::uint32_t* ended) {
  runtime_options o;
  o.memory_limit = std::size_t{16} << 20;
  o.sms = 2;
  runtime<long_one<W, Short>, short_one<Short>> rt(d, o);
  auto t = rt.submit(long_one<W, Short>{ended});
  t.wait();
  EXPECT_FALSE(t.failed());
  for (const task_error& e : rt.errors()) ADD_FAILURE() << e.type << ": " << e.code;
}

TEST_P(publish, of_a_warp_task_is_taken_before_it_ends) {
  publishes<width::warp>(where(), keep<std::uint32_t>(1).data());
}

TEST_P(publish, of_a_block_task_is_taken_before_it_ends) {
  publishes<width::block>(where(), keep<std::uint32_t>(1).data());
}

TEST_P(publish, of_a_block_task_is_taken_by_other_blocks) {
  publishes<width::block, width::block>(where(), keep<std::uint32_t>(1).data());
}

/// In a run that is long already, starts more tasks than stay with its worker, and ends when all
/// the others have begun: at most 8 batches of 32 stay, and the open one.
template <width Short>
struct parent_of_many {
  static constexpr grosr::width width = grosr::width::warp;
  static constexpr std::uint32_t stay = 9 * 32;
  std::uint32_t* ended;
  std::uint32_t children;
  GROSR_DEVICE int operator()(auto& context) const {
    const std::uint64_t now = context.clock_ns();
    simt::wait_until([&] { return context.clock_ns() - now > 100'000; }, simt::forever, nullptr,
                     "the run to be long");
    for (std::uint32_t i = context.rank(); i < children; i += context.size())
      context.spawn(short_one<Short>{ended});
    context.sync();
    if (context.rank() != 0) return 0;
    const auto most_ran = [&] {
      return simt::atomic_ref<std::uint32_t>(*ended).load(simt::relaxed) + stay >= children;
    };
    return simt::wait_until(most_ran, now + 5'000'000'000, nullptr, "its children") ==
                   simt::wait_result::ready
               ? 0
               : -ETIMEDOUT;
  }
};

template <width Short>
void children_begin(device d, std::uint32_t* ended) {
  runtime_options o;
  o.memory_limit = std::size_t{16} << 20;
  o.sms = 2;
  runtime<parent_of_many<Short>, short_one<Short>> rt(d, o);
  const auto children = static_cast<std::uint32_t>(scaled(20'000, 1'000));
  auto t = rt.submit(parent_of_many<Short>{ended, children});
  t.wait();
  EXPECT_FALSE(t.failed());
  rt.wait_all();
}

TEST_P(publish, warp_tasks_of_a_long_run_begin_before_its_end) {
  children_begin<width::warp>(where(), keep<std::uint32_t>(1).data());
}

TEST_P(publish, lane_tasks_of_a_long_run_begin_before_its_end) {
  children_begin<width::lane>(where(), keep<std::uint32_t>(1).data());
}

/// Starts a batch now and then. Three at most stay with its worker: the open one, and one for each
/// time that the last one published was not taken yet.
struct slow_parent {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* ended;
  std::uint32_t batches;
  GROSR_DEVICE int operator()(auto& context) const {
    for (std::uint32_t b = 1; b <= batches; ++b) {
      const std::uint64_t now = context.clock_ns();
      simt::wait_until([&] { return context.clock_ns() - now > 100'000; }, simt::forever, nullptr,
                       "the run to be long");
      context.spawn(short_one<grosr::width::lane>{ended});
      const auto most_ran = [&] {
        return simt::atomic_ref<std::uint32_t>(*ended).load(simt::relaxed) + 3 * 32 >= b * 32;
      };
      if (simt::wait_until(most_ran, now + 5'000'000'000, nullptr, "its children") !=
          simt::wait_result::ready)
        return -ETIMEDOUT;
    }
    return 0;
  }
};

TEST_P(publish, a_long_run_that_spawns_slowly_keeps_little_back) {
  runtime_options o;
  o.memory_limit = std::size_t{16} << 20;
  o.sms = 2;
  runtime<slow_parent, short_one<width::lane>> rt(where(), o);
  auto& ended = keep<std::uint32_t>(1);
  const auto batches = static_cast<std::uint32_t>(scaled(60, 20));
  auto t = rt.submit(slow_parent{ended.data(), batches});
  t.wait();
  EXPECT_FALSE(t.failed());
  rt.wait_all();
  EXPECT_EQ(contents(ended)[0], batches * 32);
}

struct sets_word {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* word;
  std::uint32_t value;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() == 0) simt::atomic_ref<std::uint32_t>(*word).store(value, simt::relaxed);
  }
};

/// Waits until others made this of a word; 5 s at most.
GROSR_DEVICE int wait_for(std::uint32_t* word, std::uint32_t value, std::uint64_t now,
                          const char* what) {
  return simt::wait_until(
             [&] { return simt::atomic_ref<std::uint32_t>(*word).load(simt::relaxed) == value; },
             now + 5'000'000'000, nullptr, what) == simt::wait_result::ready
             ? 0
             : -ETIMEDOUT;
}

struct waits_for_word {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* word;
  std::uint32_t value;
  GROSR_DEVICE int operator()(auto& context) const {
    return context.rank() == 0 ? wait_for(word, value, context.clock_ns(), "a block task") : 0;
  }
};

// Whichever block the packet comes to: also the one that a warp's long task keeps from meeting.
TEST_P(publish, a_block_task_from_the_host_runs_beside_a_long_warp_task) {
  runtime_options o;
  o.memory_limit = std::size_t{16} << 20;
  o.sms = 2;
  runtime<sets_word, waits_for_word> rt(where(), o);
  auto& word = keep<std::uint32_t>(1);
  for (std::uint32_t i = 1; i <= scaled(200, 20); ++i) {
    auto waits = rt.submit(waits_for_word{word.data(), i});
    auto sets = rt.submit(sets_word{word.data(), i});
    waits.wait();
    sets.wait();
    ASSERT_FALSE(waits.failed()) << i;
  }
}

/// Ends when all have begun.
struct meets_all {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* begun;
  std::uint32_t all;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.rank() != 0) return 0;
    simt::atomic_ref<std::uint32_t>(*begun).fetch_add(1, simt::relaxed);
    return wait_for(begun, all, context.clock_ns(), "all others");
  }
};

// The last worker that is idle finds the last task, whoever has it.
TEST_P(publish, warp_tasks_find_every_worker) {
  runtime_options o;
  o.memory_limit = std::size_t{64} << 20;
  runtime<meets_all> rt(where(), o);
  const std::uint32_t workers = rt.stats().workers;
  const auto rounds = static_cast<std::uint32_t>(scaled(100, 4));
  auto& begun = keep<std::uint32_t>(rounds);
  for (std::uint32_t r = 0; r < rounds; ++r) {
    auto t = rt.submit(std::vector<meets_all>(workers, meets_all{begun.data() + r, workers}));
    t.wait();
    ASSERT_FALSE(t.failed()) << r;
  }
}

/// A block task that waits for a word of the host's, and says that it has begun.
struct keeps_a_block {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* begun;  // its own, pinned
  const std::uint32_t* gate;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
    word(*begun).store(1, simt::relaxed);
    simt::wait_until(
        [&] {
          return word(const_cast<std::uint32_t&>(*gate)).load(simt::acquire) != 0 ||
                 context.aborted();
        },
        simt::forever, nullptr, "the gate");
  }
};

// A block that came to several tasks at once leaves those that it has not begun to idle blocks.
TEST_P(publish, block_tasks_do_not_wait_behind_a_long_one) {
  runtime_options o;
  o.memory_limit = std::size_t{16} << 20;
  o.sms = 2;
  runtime<keeps_a_block> rt(where(), o);
  const std::uint32_t tasks = rt.stats().workers / run::warps_per_block - 1;
  const auto rounds = static_cast<std::uint32_t>(scaled(40, 4));
  auto& words = keep<std::uint32_t>(rounds * (1 + tasks), simt::space::pinned);
  for (std::uint32_t r = 0; r < rounds; ++r) {
    std::uint32_t* const gate = &words[r * (1 + tasks)];
    for (std::uint32_t i = 1; i <= tasks; ++i) rt.submit(keeps_a_block{gate + i, gate});
    const auto begun = [&] {
      std::uint32_t n = 0;
      for (std::uint32_t i = 1; i <= tasks; ++i) n += std::atomic_ref(gate[i]).load();
      return n;
    };
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (begun() != tasks && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    ASSERT_EQ(begun(), tasks) << r;
    std::atomic_ref(*gate).store(1);
    rt.wait_all();
  }
}

// All other blocks are busy, so that nobody else looks at rings.
TEST_P(publish, one_idle_block_finds_packets_of_every_ring) {
  runtime_options o;
  o.memory_limit = std::size_t{16} << 20;
  o.sms = 2;
  o.watchdog = std::chrono::milliseconds(0);
  runtime<keeps_a_block, short_one<width::lane>, short_one<width::block>> rt(where(), o);
  auto& count = keep<std::uint32_t>(1);
  const std::uint32_t others = rt.stats().workers / run::warps_per_block - 1;
  auto& words = keep<std::uint32_t>(1 + others, simt::space::pinned);
  std::vector<ticket> kept;
  for (std::uint32_t i = 0; i < others; ++i)
    kept.push_back(rt.submit(keeps_a_block{&words[1 + i], &words[0]}));
  const std::atomic_ref<std::uint32_t> gate(words[0]);
  const auto begun = [&] {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < others; ++i) n += std::atomic_ref(words[1 + i]).load();
    return n;
  };
  for (unsigned i = 0; i < 20'000 && begun() != others; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(begun(), others);
  const auto n = static_cast<std::uint32_t>(scaled(400, 40));
  std::atomic<bool> late{false};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < n && !late; ++i) {
        const auto level = static_cast<priority>((t + i) % priority_levels);
        const ticket one = i % 3 == 0 ? rt.submit(short_one<width::block>{count.data()}, level)
                                      : rt.submit(short_one<width::lane>{count.data()}, level);
        if (!one.wait_for(std::chrono::seconds(20))) late = true;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_FALSE(late);
  gate.store(1);
  for (const ticket& t : kept) t.wait();
  if (!late) {
    EXPECT_EQ(contents(count)[0], 4 * n);
  }
}

/// A block task that ends when all of its batch have begun.
struct one_of_a_batch {
  static constexpr grosr::width width = grosr::width::block;
  std::uint32_t* begun;
  std::uint32_t all;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.rank() != 0) return 0;
    simt::atomic_ref<std::uint32_t> count(*begun);
    count.fetch_add(1, simt::relaxed);
    return simt::wait_until([&] { return count.load(simt::relaxed) == all; },
                            context.clock_ns() + 5'000'000'000, nullptr,
                            "the others of the batch") == simt::wait_result::ready
               ? 0
               : -ETIMEDOUT;
  }
};

/// A lane starts all of them, in one batch; or each warp of a block one, in batches of one.
template <width W>
struct batch_parent {
  static constexpr grosr::width width = W;
  std::uint32_t* begun;
  std::uint32_t all;
  GROSR_DEVICE void operator()(auto& context) const {
    if constexpr (W == grosr::width::lane)
      for (std::uint32_t i = 0; i < all; ++i) context.spawn(one_of_a_batch{begun, all});
    else if (simt::lane_id() == 0 && simt::warp_id() < all)
      context.spawn(one_of_a_batch{begun, all});
  }
};

template <width W>
void all_begin(device d, std::uint32_t* begun) {
  runtime_options o;
  o.memory_limit = std::size_t{16} << 20;
  o.sms = 4;
  runtime<batch_parent<W>, one_of_a_batch> rt(d, o);
  const std::uint32_t blocks = rt.stats().workers / run::warps_per_block;
  ASSERT_GT(blocks, 1u);
  rt.submit(batch_parent<W>{begun, std::min(blocks, 4u)});
  rt.wait_all();
  EXPECT_EQ(rt.stats().failed, 0u);
  for (const task_error& e : rt.errors()) ADD_FAILURE() << e.type << ": " << e.code;
}

TEST_P(publish, block_tasks_of_a_batch_do_not_wait_for_each_other) {
  all_begin<width::lane>(where(), keep<std::uint32_t>(1).data());
}

TEST_P(publish, block_tasks_of_a_block_do_not_wait_for_each_other) {
  all_begin<width::block>(where(), keep<std::uint32_t>(1).data());
}

}  // namespace
}  // namespace grosr::testing
