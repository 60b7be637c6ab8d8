// What is forked is joined: results arrive, of every width, however little memory there is.
#include <chrono>
#include <thread>
#include <utility>

#include "run/least_memory.hpp"
#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/scramble.hpp"

namespace grosr::testing {
namespace {

struct sum {
  using result = std::uint64_t;
  std::uint64_t a, b;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(a + b);
    return 0;
  }
};

struct fib {
  using result = std::uint64_t;
  std::uint32_t n;
  GROSR_DEVICE void operator()(auto& context) const {
    if (n < 2) return context.give(n);
    auto& next = context.join(sum{});
    context.fork(fib{n - 1}, &next.a);
    context.fork(fib{n - 2}, &next.b);
  }
};

using fib_runtime = runtime<fib, sum>;

std::uint64_t fib_of(std::uint32_t n) {
  std::uint64_t a = 0, b = 1;
  for (; n != 0; --n) a = std::exchange(b, a + b);
  return a;
}

GROSR_RUNTIME_SUITE(join);

runtime_options small() {
  runtime_options o;
  o.memory_limit = std::size_t{12} << 20;
  o.sms = 2;
  return o;
}

TEST_P(join, results_arrive) {
  fib_runtime rt(where(), small());
  for (std::uint32_t n = 0; n <= scaled_depth(18, 12); ++n)
    EXPECT_EQ(rt.fork(fib{n}).get(), fib_of(n)) << n;
  rt.stop();
  EXPECT_EQ(rt.stats().rejected, 0u);
}

/// Counts the leaves of a tree whose nodes have another width at each level.
template <grosr::width W>
struct count;
template <grosr::width W>
struct add_up {
  using result = std::uint32_t;
  static constexpr grosr::width width = W;
  std::uint32_t part[3];
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.rank() != 0) return 0;
    if (context.status() != 0) return context.status();
    context.give(part[0] + part[1] + part[2]);
    return 0;
  }
};
template <grosr::width W>
struct count {
  using result = std::uint32_t;
  static constexpr grosr::width width = W;
  std::uint32_t depth;
  std::uint32_t* threads;  ///< how many ran nodes
  GROSR_DEVICE void operator()(auto& context) const {
    add_one(threads);
    if (context.rank() != 0) return;
    if (depth == 0) return context.give(1u);
    auto fork_all = [&](auto& next) {
      context.fork(count<grosr::width::lane>{depth - 1, threads}, &next.part[0]);
      context.fork(count<grosr::width::warp>{depth - 1, threads}, &next.part[1]);
      context.fork(count<grosr::width::block>{depth - 1, threads}, &next.part[2]);
    };
    // The continuation has another width than the node.
    if constexpr (W == grosr::width::lane)
      fork_all(context.join(add_up<grosr::width::warp>{}));
    else if constexpr (W == grosr::width::warp)
      fork_all(context.join(add_up<grosr::width::block>{}));
    else
      fork_all(context.join(add_up<grosr::width::lane>{}));
  }
};
using count_lane = count<grosr::width::lane>;
using wide_runtime =
    runtime<count_lane, count<grosr::width::warp>, count<grosr::width::block>,
            add_up<grosr::width::lane>, add_up<grosr::width::warp>, add_up<grosr::width::block>>;

TEST_P(join, of_every_width) {
  wide_runtime rt(where(), small());
  auto& threads = keep<std::uint32_t>(1);
  const std::uint32_t depth = scaled_depth(5, 4);
  std::uint32_t leaves = 1;
  for (std::uint32_t i = 0; i < depth; ++i) leaves *= 3;
  EXPECT_EQ(rt.fork(count_lane{depth, threads.data()}).get(), leaves);
  rt.stop();
  EXPECT_GT(contents(threads)[0], leaves);
}

/// Fills cells, then doubles them all, then tells their sum: three phases, each joined.
struct phases {
  using result = std::uint64_t;
  std::uint32_t* cells;
  std::uint32_t count, phase;
  std::uint64_t part[4];
  GROSR_DEVICE void operator()(auto& context) const;
};
struct fill_part {
  using result = void;
  std::uint32_t *from, *to;
  std::uint32_t doubles;
  GROSR_DEVICE void operator()(auto&) const {
    for (auto* c = from; c != to; ++c) *c = doubles ? *c * 2 : 21;
  }
};
struct sum_part {
  using result = std::uint64_t;
  std::uint32_t *from, *to;
  GROSR_DEVICE void operator()(auto& context) const {
    std::uint64_t all = 0;
    for (auto* c = from; c != to; ++c) all += *c;
    context.give(all);
  }
};
GROSR_DEVICE void phases::operator()(auto& context) const {
  if (phase == 3) return context.give(part[0] + part[1] + part[2] + part[3]);
  phases later = *this;
  ++later.phase;
  auto& next = context.join(later);
  for (std::uint32_t i = 0; i < 4; ++i) {
    auto *from = cells + count * i / 4, *to = cells + count * (i + 1) / 4;
    if (phase == 2)
      context.fork(sum_part{from, to}, &next.part[i]);
    else if (phase == 0)
      context.fork(fill_part{from, to, 0});
    else
      context.fork(fill_part{from, to, 1});
  }
}

TEST_P(join, again_and_again) {
  runtime<phases, fill_part, sum_part> rt(where(), small());
  auto& cells = keep<std::uint32_t>(1000);
  EXPECT_EQ(rt.fork(phases{cells.data(), 1000, 0, {}}).get(), 42'000u);
}

/// A chain: each level waits for the one below.
struct up {
  using result = std::uint32_t;
  std::uint32_t below;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(below + 1);
    return 0;
  }
};
struct down {
  using result = std::uint32_t;
  std::uint32_t levels;
  GROSR_DEVICE void operator()(auto& context) const {
    if (levels == 0) return context.give(0u);
    auto& next = context.join(up{});
    context.fork(down{levels - 1}, &next.below);
  }
};

TEST_P(join, a_long_way_back_is_no_standstill) {
  runtime_options o = small();
  o.watchdog = std::chrono::milliseconds(60) * slowdown;
  runtime<down, up> rt(where(), o);
  const auto levels = static_cast<std::uint32_t>(scaled(10'000));
  EXPECT_EQ(rt.fork(down{levels}).get(), levels);
}

TEST_P(join, deeper_than_memory_is_an_error_and_no_more) {
  runtime_options o = small();
  o.sms = 1;
  o.slots = 16;
  o.ring_capacity = 8;
  o.deque_capacity = 16;
  using runtime_type = runtime<down, up>;
  o.memory_limit = least_memory<runtime_type>(where(), o);
  ASSERT_NE(o.memory_limit, 0u);
  runtime_type rt(where(), o);
  // Each level holds a frame of 32 bytes: more than all memory.
  const auto levels = static_cast<std::uint32_t>(o.memory_limit / 32);
  EXPECT_EQ(rt.fork(down{levels}).status(), -ENOMEM);
  ASSERT_FALSE(rt.errors().empty());
  EXPECT_EQ(rt.errors()[0].code, -ENOMEM);
  EXPECT_NE(rt.errors()[0].did.find("no place for its continuation"), std::string::npos);
  EXPECT_EQ(rt.fork(down{100}).get(), 100u);  // it goes on
  rt.wait_all();
  EXPECT_LE(rt.stats().memory, o.memory_limit);
}

/// What a task does that it should not, or may.
struct odd {
  using result = std::uint32_t;
  enum what : std::uint32_t {
    fails,
    fails_below,
    gives_nothing,
    gives_twice,
    forks_alone,
    joins_twice,
    joins_twice_and_forks,
    joins_nothing,
    passes,
    gives_and_joins,
    joins_and_gives,
    passes_and_joins,
    forks_elsewhere
  };
  std::uint32_t does;
  GROSR_DEVICE int operator()(auto& context) const;
};
struct hand_on {
  using result = std::uint32_t;
  std::uint32_t value;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(value + 1);
    return 0;
  }
};
GROSR_DEVICE int odd::operator()(auto& context) const {
  switch (does) {
    case fails:
      return -ERANGE;
    case fails_below: {
      auto& next = context.join(hand_on{});
      context.fork(odd{fails}, &next.value);
      context.fork(odd{passes}, &next.value);
      return 0;
    }
    case gives_nothing:
      return 0;
    case gives_twice:
      context.give(1u);
      context.give(2u);
      return 0;
    case forks_alone: {
      std::uint32_t value = 0;
      context.fork(odd{passes}, &value);
      return 0;
    }
    case joins_twice:
      context.join(hand_on{});
      context.join(hand_on{});
      return 0;
    case joins_twice_and_forks: {
      context.join(hand_on{});
      auto& next = context.join(hand_on{});
      context.fork(odd{passes}, &next.value);
      return 0;
    }
    case joins_nothing:
      context.join(hand_on{6});
      return 0;
    case passes:
      context.pass(hand_on{4});
      return 0;
    case forks_elsewhere: {
      hand_on mine = context.join(hand_on{});  // a copy: results would go where it was
      context.fork(odd{passes}, &mine.value);
      return 0;
    }
    case joins_and_gives:
      context.join(hand_on{});
      context.give(1u);
      return 0;
    case passes_and_joins:
      context.pass(hand_on{4});
      context.join(hand_on{});
      return 0;
    default:
      context.give(1u);
      context.join(hand_on{});
      return 0;
  }
}

TEST_P(join, tells_what_went_wrong) {
  runtime<odd, hand_on> rt(where(), small());
  const auto status = [&](odd::what does) { return rt.fork(odd{does}).status(); };
  EXPECT_EQ(status(odd::fails), -ERANGE);
  EXPECT_EQ(status(odd::fails_below), -ERANGE);
  EXPECT_EQ(status(odd::gives_nothing), -ENODATA);
  EXPECT_EQ(status(odd::gives_twice), -EINVAL);
  EXPECT_EQ(status(odd::forks_alone), -EINVAL);
  EXPECT_EQ(status(odd::joins_twice), -EINVAL);
  EXPECT_EQ(status(odd::joins_twice_and_forks), -EINVAL);
  EXPECT_EQ(status(odd::gives_and_joins), -EINVAL);
  EXPECT_EQ(status(odd::joins_and_gives), -EINVAL);
  EXPECT_EQ(rt.fork(odd{odd::passes_and_joins}).get(), 5u);  // the other one has it
  EXPECT_EQ(status(odd::forks_elsewhere), -EFAULT);
  EXPECT_EQ(rt.fork(odd{odd::joins_nothing}).get(), 7u);
  EXPECT_EQ(rt.fork(odd{odd::passes}).get(), 5u);
  EXPECT_EQ(error_of([&] { rt.fork(odd{odd::fails}).get(); }).code(), errc::task_failed);
}

// Each misuse is an error that names the task that did it, and what it did; a continuation that
// only says what it was told is none.
TEST_P(join, names_who_did_what) {
  const struct {
    odd::what does;
    int code;
    const char* words;
  } cases[] = {{odd::gives_nothing, -ENODATA, "ended without a result"},
               {odd::gives_twice, -EINVAL, "gave or passed its result twice"},
               {odd::forks_alone, -EINVAL, "forked before it joined"},
               {odd::joins_twice, -EINVAL, "joined twice"},
               {odd::joins_twice_and_forks, -EINVAL, "joined twice"},
               {odd::gives_and_joins, -EINVAL, "both gave (or passed) its result and joined"},
               {odd::joins_and_gives, -EINVAL, "both gave (or passed) its result and joined"},
               {odd::passes_and_joins, -EINVAL, "both gave (or passed) its result and joined"},
               {odd::forks_elsewhere, -EFAULT, "no member of what join() returned"},
               {odd::fails_below, -ERANGE, "returned an error"}};
  for (const auto& c : cases) {
    runtime<odd, hand_on> rt(where(), small());
    rt.fork(odd{c.does}).wait();
    rt.wait_all();
    const std::vector<task_error> errors = rt.errors();
    ASSERT_EQ(errors.size(), 1u) << c.words;
    const task_error& e = errors[0];
    EXPECT_NE(e.type.find("odd"), std::string::npos) << e.type;
    EXPECT_EQ(e.code, c.code) << c.words;
    EXPECT_NE(e.did.find(c.words), std::string::npos) << e.did;
    EXPECT_EQ(e.text(), e.type + " " + e.did + ": " + std::to_string(c.code) + " (" +
                            std::generic_category().message(-c.code) + ")");
    rt.stop();
    EXPECT_GE(rt.stats().failed, 1u);
  }
  runtime<odd, hand_on> rt(where(), small());
  auto t = rt.submit(odd{odd::forks_alone});
  t.wait();
  EXPECT_TRUE(t.failed());
}

/// Looks for a number below its node of a tree; who finds it cancels the rest.
struct seek {
  using result = std::uint32_t;
  std::uint32_t depth, at, wanted;
  std::uint32_t *looked, *found;
  join_scope all;
  GROSR_DEVICE void operator()(auto& context) const;
};
struct sought {
  using result = std::uint32_t;
  std::uint32_t* found;
  std::uint32_t ends[2];
  GROSR_DEVICE int operator()(auto& context) const {
    context.give(found != nullptr ? *found : 0u);
    return context.status() == -ECANCELED ? 0 : context.status();
  }
};
struct seek_all {
  using result = std::uint32_t;
  seek first;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(sought{first.found, {}});
    seek s = first;
    s.all = context.scope();
    context.fork(s, &next.ends[0]);
  }
};
GROSR_DEVICE void seek::operator()(auto& context) const {
  if (depth == 0) {
    add_one(looked);
    if (at == wanted) {
      *found = at + 1;
      context.cancel(all);
    }
    return context.give(0u);
  }
  auto& next = context.join(sought{nullptr, {}});
  context.fork(seek{depth - 1, 2 * at, wanted, looked, found, all}, &next.ends[0]);
  context.fork(seek{depth - 1, 2 * at + 1, wanted, looked, found, all}, &next.ends[1]);
}

TEST_P(join, what_is_cancelled_does_not_begin) {
  runtime<seek_all, seek, sought> rt(where(), small());
  auto& cells = keep<std::uint32_t>(2);
  const std::uint32_t depth = scaled_depth(16, 14);
  for (std::uint32_t wanted : {0u, 5000u, (1u << depth) - 1}) {
    cells.copy_from(std::vector<std::uint32_t>(2));
    const seek first{depth, 0, wanted, cells.data(), cells.data() + 1, {}};
    EXPECT_EQ(rt.fork(seek_all{first}).get(), wanted + 1);
    rt.wait_all();
    EXPECT_LT(contents(cells)[0], 1u << depth);
  }
  // And nothing is left of it.
  cells.copy_from(std::vector<std::uint32_t>(2));
  EXPECT_EQ(rt.fork(seek_all{{8, 0, 1u << 20, cells.data(), cells.data() + 1, {}}}).get(), 0u);
  EXPECT_EQ(contents(cells)[0], 256u);
}

TEST_P(join, in_the_least_memory) {
  runtime_options o = small();
  o.slots = 16;
  o.ring_capacity = 8;
  o.deque_capacity = 16;
  o.memory_limit = least_memory<fib_runtime>(where(), o);
  ASSERT_NE(o.memory_limit, 0u);
  fib_runtime rt(where(), o);
  const std::uint32_t depth = scaled_depth(20, 14);
  EXPECT_EQ(rt.fork(fib{depth}).get(), fib_of(depth));
  rt.stop();
  EXPECT_EQ(rt.stats().rejected, 0u);
  EXPECT_LE(rt.stats().memory, o.memory_limit);
}

TEST_P(join, goes_on_after_parking) {
  fib_runtime rt(where(), small());
  auto f = rt.fork(fib{16});
  for (int i = 0; i < 5; ++i) rt.park();
  EXPECT_EQ(f.get(), fib_of(16));
}

TEST_P(join, no_future_comes_after_the_end) {
  runtime_options o = small();
  o.futures = 1;
  fib_runtime rt(where(), o);
  const auto only = rt.fork(fib{5});
  only.wait();
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    rt.stop();
  });
  EXPECT_EQ(error_of([&] { rt.fork(fib{5}); }).code(), errc::stopped);
  stopper.join();
  EXPECT_EQ(only.get(), fib_of(5));
}

TEST_P(join, an_empty_future_has_no_result) {
  EXPECT_EQ(error_of([] { future<std::uint32_t>().get(); }).code(), errc::misuse);
  fib_runtime rt(where(), small());
  auto one = rt.fork(fib{5});
  const auto other = std::move(one);
  EXPECT_EQ(error_of([&] { one.get(); }).code(), errc::misuse);
  EXPECT_EQ(other.get(), fib_of(5));
}

TEST_P(join, as_many_futures_as_there_are) {
  runtime_options o = small();
  o.futures = 4;
  fib_runtime rt(where(), o);
  auto first = rt.fork(fib{10});
  for (int i = 0; i < 50; ++i) rt.fork(fib{8});  // nobody waits for them
  EXPECT_EQ(rt.fork(fib{9}).get(), 34u);
  EXPECT_EQ(first.get(), 55u);
}

TEST_P(join, many_at_a_time) {
  fib_runtime rt(where(), small());
  std::vector<future<std::uint64_t>> all;
  for (std::uint32_t i = 0; i < 200; ++i) all.push_back(rt.fork(fib{i % 10}));
  constexpr std::uint64_t values[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34};
  for (std::uint32_t i = 0; i < 200; ++i) EXPECT_EQ(all[i].get(), values[i % 10]);
}

}  // namespace
}  // namespace grosr::testing
