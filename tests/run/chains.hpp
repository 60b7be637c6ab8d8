// Chains of tasks of one width, for tests of what a task starts next.
#pragma once

#include <atomic>
#include <chrono>

#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {

/// No run is a long one, however slow the machine is: what follows takes the short way.
struct patient : run::default_policy {
  static constexpr std::uint64_t long_run_cycles = std::uint64_t{1} << 40;
};

/// A link of a chain: `left` more come after it, and at every `every`-th one `aside` links that are
/// the last of their own.
template <grosr::width W, unsigned Words = 0>
struct link {
  static constexpr grosr::width width = W;
  std::uint32_t* ran;
  std::uint32_t left, every, aside;
  std::uint32_t load[Words + 1];
  GROSR_DEVICE void operator()(auto& context) const {
    context.sync();
    if (context.rank() != 0) return;
    add_one(ran);
    for (std::uint32_t word : load)
      if (word != left) add_one(ran);  // a record that is not whole
    if (left == 0) return;
    if (every != 0 && left % every == 0)
      for (std::uint32_t i = 0; i < aside; ++i) context.spawn(of(ran, 0, 0, 0));
    context.spawn(of(ran, left - 1, every, aside));
  }
  GROSR_DEVICE static link of(std::uint32_t* ran, std::uint32_t left, std::uint32_t every,
                              std::uint32_t aside) {
    link l{ran, left, every, aside, {}};
    for (std::uint32_t& word : l.load) word = left;
    return l;
  }
};

/// A chain without end, unless the host opens its gate; it may say how far it is.
template <grosr::width W>
struct endless {
  static constexpr grosr::width width = W;
  const std::uint32_t* over;  ///< pinned
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    simt::atomic_ref<std::uint32_t, simt::scope::system> word(const_cast<std::uint32_t&>(*over));
    if (word.load(simt::relaxed) == 0) context.spawn(*this);
  }
};

struct says {
  std::uint32_t* said;
  GROSR_DEVICE void operator()(auto&) const { add_one(said); }
};

/// Starts `left` more, each by the one before.
template <grosr::width W>
struct last {
  static constexpr grosr::width width = W;
  std::uint32_t *ran, left;
  GROSR_DEVICE void operator()(auto& context) const {
    if (context.rank() != 0) return;
    add_one(ran);
    if (left != 0) context.spawn(last{ran, left - 1});
  }
};

/// At its `left`-th link a chain publishes the next one, and waits until that has begun, on another
/// worker.
template <grosr::width W>
struct publishing {
  static constexpr grosr::width width = W;
  std::uint32_t* begun;
  std::uint32_t left;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.rank() != 0) return 0;
    const simt::atomic_ref<std::uint32_t> count(*begun);
    count.fetch_add(1, simt::relaxed);
    if (left == 0) return 0;
    const std::uint32_t before = count.load(simt::relaxed);
    context.spawn(publishing{begun, left - 1});
    if (left % 10 != 0) return 0;
    context.publish();
    return simt::wait_until([&] { return count.load(simt::relaxed) != before; },
                            context.clock_ns() + 5'000'000'000, nullptr,
                            "the next link") == simt::wait_result::ready
               ? 0
               : -ETIMEDOUT;
  }
};

// ---- beside chains that go on until `over` is 1 ----

/// The kernel leaves when it is asked to, and they go on later.
template <class Runtime>
void expect_parks(Runtime& rt, std::uint32_t& over) {
  for (std::uint32_t i = 0; i < scaled(20, 3); ++i) {
    rt.park();
    EXPECT_FALSE(rt.resident());
    EXPECT_FALSE(rt.wait_all_for(std::chrono::milliseconds(2)));
  }
  std::atomic_ref(over).store(1);
  EXPECT_TRUE(rt.wait_all_for(std::chrono::seconds(20)));
}

/// The runtime, whose watchdog waits for a third as long, sees that they go on.
template <class Runtime>
void expect_progress(Runtime& rt, std::uint32_t& over) {
  EXPECT_FALSE(rt.wait_all_for(std::chrono::milliseconds(1500) * slowdown));
  std::atomic_ref(over).store(1);
  EXPECT_TRUE(rt.wait_all_for(std::chrono::seconds(20)));
}

/// An abort ends them.
template <class Runtime>
void expect_abort(Runtime& rt) {
  EXPECT_FALSE(rt.wait_all_for(std::chrono::milliseconds(5)));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THROW(rt.stop(std::chrono::milliseconds(1)), error);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
}

/// Some links fail.
template <grosr::width W>
struct failing {
  static constexpr grosr::width width = W;
  std::uint32_t left, reserved;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.rank() == 0 && left != 0) context.spawn(failing{left - 1, 0});
    return left % 10 == 0 ? -EIO : 0;
  }
};

}  // namespace grosr::testing
