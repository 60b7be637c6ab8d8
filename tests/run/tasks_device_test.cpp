// Tasks of every width and size run in one job.
#include "run/tasks.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(tasks);

TEST_P(tasks, of_every_kind_run_in_one_job) {
  auto rt = start();
  auto& cells = keep<std::uint32_t>(64);
  std::uint32_t* c = cells.data();
  for (std::uint32_t i = 0; i < 8; ++i) {
    rt->submit(mark<16>::make(c, i));
    rt->submit(block_mark{c, 8 + i});
    rt->submit(mark<24>::make(c, 16 + i));
    rt->submit(warp_mark{c, 24 + i});
    rt->submit(mark<64>::make(c, 32 + i));
    rt->submit(tree{c + 40 + i, 3});
    rt->submit(mixed{c + 48 + i, 2});
    rt->submit(fan_out{c, 56, 8, 0});
  }
  rt->wait_all();
  const auto all = contents(cells);
  for (std::uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(all[i], 1u);
    EXPECT_EQ(all[8 + i], 128u);
    EXPECT_EQ(all[16 + i], 1u);
    EXPECT_EQ(all[24 + i], 32u);
    EXPECT_EQ(all[32 + i], 1u);
    EXPECT_EQ(all[40 + i], 8u);
    EXPECT_EQ(all[48 + i], 9u);
    EXPECT_EQ(all[56 + i], 8u);
  }
  rt->stop();
  const runtime_stats s = rt->stats();
  EXPECT_EQ(s.failed, 0u);
  EXPECT_EQ(s.rejected, 0u);
  EXPECT_EQ(s.submitted, 64u);
  EXPECT_EQ(s.spawned, 8 * (14u + 12u + 8u));
  EXPECT_EQ(s.tasks, s.submitted + s.spawned);
}

}  // namespace
}  // namespace grosr::testing
