// A task that returns an error is counted; the first 64 are kept with type, code and bytes, and
// everything else goes on.
#include <cstring>
#include <map>

#include "run/tasks.hpp"

namespace grosr::testing {
namespace {

GROSR_RUNTIME_SUITE(failures);

struct fails {
  std::uint32_t id;
  std::int32_t code;
  GROSR_DEVICE int operator()(auto&) const { return code; }
};

// Only some lanes return the error: the task failed once.
template <grosr::width Width>
struct fails_in {
  static constexpr grosr::width width = Width;
  std::uint32_t id, first_rank;
  GROSR_DEVICE int operator()(auto& context) const {
    return context.rank() >= first_rank ? -static_cast<int>(id) : 0;
  }
};
using warp_fails = fails_in<width::warp>;
using block_fails = fails_in<width::block>;

struct spawns_failures {
  std::uint32_t count, first_id;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = 0; i < count; ++i) context.spawn(fails{first_id + i, -5});
  }
};

using failing_runtime = runtime<fails, warp_fails, block_fails, spawns_failures>;

TEST_P(failures, are_kept_with_type_code_and_bytes) {
  failing_runtime rt(where(), small_options());
  rt.submit(fails{42, -22});
  rt.submit(std::vector<fails>{{43, -1}, {44, 0}, {45, -110}});
  rt.wait_all();
  std::map<std::uint32_t, int> codes;
  for (const task_error& e : rt.errors()) {
    EXPECT_NE(e.type.find("fails"), std::string::npos) << e.type;
    ASSERT_EQ(e.arguments.size(), sizeof(fails));
    fails task;
    std::memcpy(&task, e.arguments.data(), sizeof task);
    EXPECT_EQ(task.code, e.code);
    codes[task.id] = e.code;
  }
  EXPECT_EQ(codes, (std::map<std::uint32_t, int>{{42, -22}, {43, -1}, {45, -110}}));
  rt.stop();
  EXPECT_EQ(rt.stats().failed, 3u);
  EXPECT_EQ(rt.stats().tasks, 4u);
  EXPECT_EQ(rt.errors().size(), 3u);
}

TEST_P(failures, are_counted_beyond_those_kept) {
  failing_runtime rt(where(), small_options());
  const ticket t = rt.submit(std::vector<fails>(1000, fails{7, -7}));
  const ticket good = rt.submit(std::vector<fails>(1000, fails{8, 0}));
  rt.wait_all();
  EXPECT_TRUE(t.failed());
  EXPECT_FALSE(good.failed());
  EXPECT_EQ(rt.errors().size(), 64u);
  for (const task_error& e : rt.errors()) EXPECT_EQ(e.code, -7);
  rt.stop();
  EXPECT_EQ(rt.stats().failed, 1000u);
}

TEST_P(failures, of_wide_tasks_count_once) {
  failing_runtime rt(where(), small_options());
  std::vector<ticket> failed, well;
  for (std::uint32_t rank : {0u, 1u, 31u, 32u, 40u, 127u, 128u}) {
    (rank < 32 ? failed : well).push_back(rt.submit(warp_fails{rank + 1, rank}));
    (rank < 128 ? failed : well).push_back(rt.submit(block_fails{rank + 1000, rank}));
  }
  rt.wait_all();
  for (const ticket& t : failed) EXPECT_TRUE(t.failed());
  for (const ticket& t : well) EXPECT_FALSE(t.failed());
  EXPECT_EQ(rt.errors().size(), 3u + 6u);
  for (const task_error& e : rt.errors()) {
    std::uint32_t id;
    std::memcpy(&id, e.arguments.data(), sizeof id);
    EXPECT_EQ(e.code, -static_cast<int>(id));
    EXPECT_NE(e.type.find("fails_in"), std::string::npos);
  }
  rt.stop();
  EXPECT_EQ(rt.stats().failed, 3u + 6u);
}

TEST_P(failures, of_spawned_tasks_are_kept_but_not_the_tickets) {
  failing_runtime rt(where(), small_options());
  const ticket t = rt.submit(spawns_failures{50, 100});
  rt.wait_all();
  EXPECT_FALSE(t.failed());
  EXPECT_EQ(rt.errors().size(), 50u);
  std::vector<std::uint32_t> seen(50);
  for (const task_error& e : rt.errors()) {
    std::uint32_t id;
    std::memcpy(&id, e.arguments.data(), sizeof id);
    ASSERT_LT(id - 100, 50u);
    ++seen[id - 100];
  }
  EXPECT_EQ(seen, std::vector<std::uint32_t>(50, 1));
  rt.stop();
  EXPECT_EQ(rt.stats().failed, 50u);
}

TEST_P(failures, survive_parking) {
  failing_runtime rt(where(), small_options());
  const ticket t = rt.submit(fails{1, -1});
  rt.wait_all();
  rt.park();
  rt.submit(fails{2, -2});
  rt.wait_all();
  EXPECT_TRUE(t.failed());
  EXPECT_EQ(rt.errors().size(), 2u);
  rt.stop();
  EXPECT_EQ(rt.stats().failed, 2u);
}

}  // namespace
}  // namespace grosr::testing
