// Options outside their range are refused in one line that says what was asked, what is allowed,
// and what to do; those at its edge work.
#include "grosr/run/options.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "grosr/run/runtime.hpp"
#include "grosr/simt/atomic.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

struct count {
  std::uint32_t* ran;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t>(*ran).fetch_add(1, simt::relaxed);
  }
};

struct refused {
  std::string name;
  std::function<void(runtime_options&)> set;
  std::vector<std::string> words;
};

const std::vector<refused>& refusals() {
  static const std::vector<refused> all = {
      {"ring_capacity_0",
       [](auto& o) { o.ring_capacity = 0; },
       {"ring_capacity", "capacity of 0", "power of two"}},
      {"ring_capacity_3",
       [](auto& o) { o.ring_capacity = 3; },
       {"ring_capacity", "capacity of 3", "power of two"}},
      {"ring_capacity_4",
       [](auto& o) { o.ring_capacity = 4; },
       {"ring_capacity", "capacity of 4", "from 8 to 8192"}},
      {"ring_capacity_1000",
       [](auto& o) { o.ring_capacity = 1000; },
       {"ring_capacity", "capacity of 1000"}},
      {"ring_capacity_2_31",
       [](auto& o) { o.ring_capacity = 1u << 31; },
       {"ring_capacity", "2147483648", "power of two from 8 to 8192"}},
      {"slots_0", [](auto& o) { o.slots = 0; }, {"slots = 0", "from 4 to 16777216"}},
      {"slots_3", [](auto& o) { o.slots = 3; }, {"slots = 3", "from 4 to 16777216"}},
      {"slots_2_25", [](auto& o) { o.slots = 1u << 25; }, {"slots = 33554432", "16777216"}},
      {"deque_0",
       [](auto& o) { o.deque_capacity = 0; },
       {"deque_capacity", "capacity of 0", "power of two"}},
      {"deque_1", [](auto& o) { o.deque_capacity = 1; }, {"deque_capacity", "capacity of 1"}},
      {"deque_100", [](auto& o) { o.deque_capacity = 100; }, {"deque_capacity", "100"}},
      {"deque_2_31",
       [](auto& o) { o.deque_capacity = 1u << 31; },
       {"deque_capacity", "2147483648"}},
      {"rings", [](auto& o) { o.rings_per_level = 9; }, {"rings_per_level = 9", "at most 8"}},
      {"inline_depth", [](auto& o) { o.inline_depth = 65; }, {"inline_depth = 65", "at most 64"}},
      {"memory_0",
       [](auto& o) { o.memory_limit = 0; },
       {"memory_limit is 0", "need at least", "raise"}},
      {"memory_small",
       [](auto& o) { o.memory_limit = 10'000; },
       {"memory_limit is 10 KiB", "workers need at least", "raise memory_limit"}},
      {"memory_for_deques",
       [](auto& o) { o.deque_capacity = 1u << 30; },
       {"memory_limit is 262144 KiB", "need at least", "deque_capacity"}},
      {"blocks_per_sm",
       [](auto& o) { o.blocks_per_sm = 1000; },
       {"1000 blocks an SM", "fit", "ask for fewer"}},
      {"idle_timeout", [](auto& o) { o.idle_timeout = -1us; }, {"idle_timeout", "negative"}},
      {"watchdog", [](auto& o) { o.watchdog = -1ms; }, {"watchdog", "negative"}},
  };
  return all;
}

class options : public ::testing::TestWithParam<refused> {};

TEST_P(options, are_refused_in_words) {
  runtime_options o;
  GetParam().set(o);
  try {
    runtime<count> rt(device(), o);
    FAIL() << "nothing was thrown";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::invalid_option) << e.what();
    const std::string text = e.what();
    EXPECT_EQ(text.rfind("runtime: ", 0), 0u) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    for (const std::string& word : GetParam().words)
      EXPECT_NE(text.find(word), std::string::npos) << "\"" << word << "\" is not in: " << text;
  }
}

INSTANTIATE_TEST_SUITE_P(bad, options, ::testing::ValuesIn(refusals()),
                         [](const auto& info) { return info.param.name; });

void expect_work(const runtime_options& o) {
  std::uint32_t ran = 0;
  {
    runtime<count> rt(device(), o);
    rt.submit(std::vector<count>(1000, count{&ran}));
    rt.submit(count{&ran}, priority::low);
  }
  EXPECT_EQ(ran, 1001u);
}

TEST(options_at_the_edge, work) {
  expect_work({});
  runtime_options o;
  o.ring_capacity = 8;
  o.slots = 4;
  o.deque_capacity = 2;
  o.rings_per_level = 8;
  o.inline_depth = 0;
  o.sms = 1;
  o.blocks_per_sm = 1;
  o.idle_timeout = 1us;
  o.watchdog = 0ms;
  expect_work(o);
  o.inline_depth = 64;
  o.rings_per_level = 1;
  o.idle_timeout = std::chrono::microseconds::max();
  o.watchdog = std::chrono::hours(24 * 365);
  expect_work(o);
}

TEST(options_at_the_edge, of_a_device_that_is_not_here_say_so) {
  try {
    runtime<count> rt(device("host:7"));
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::no_such_device);
  }
}

}  // namespace
}  // namespace grosr::testing
