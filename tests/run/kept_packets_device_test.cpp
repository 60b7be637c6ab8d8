// What a worker keeps of the host's packets is completed, also between runs of what it started.
#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

struct second {
  std::uint32_t* ended;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t>(*ended).fetch_add(1, simt::relaxed);
  }
};

struct first {
  std::uint32_t* ended;
  GROSR_DEVICE void operator()(auto& context) const { context.spawn(second{ended}); }
};

GROSR_RUNTIME_SUITE(kept_packets);

TEST_P(kept_packets, are_completed_between_runs_of_what_they_started) {
  runtime_options o;
  o.memory_limit = std::size_t{16} << 20;
  o.sms = 2;
  o.staging_buffers = 4;  // one that is not given back is missed soon
  runtime<first, second> rt(where(), o);
  auto& ended = keep<std::uint32_t>(1);
  const std::vector<first> tasks(scaled(50'000, 5'000), first{ended.data()});
  auto t = rt.submit(tasks);
  ASSERT_TRUE(t.wait_for(std::chrono::seconds(100)));
  ASSERT_TRUE(rt.wait_all_for(std::chrono::seconds(100)));
  EXPECT_EQ(contents(ended)[0], tasks.size());
}

}  // namespace
}  // namespace grosr::testing
