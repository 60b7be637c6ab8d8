// Broken contracts end the launch in an error that names the lane, the call and its place.
#include <gtest/gtest.h>

#include "grosr/simt/error.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::simt {
namespace {

template <class Function>
std::string misuse(Function&& f) {
  try {
    f();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::misuse) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

template <class Kernel>
std::string misuse_in(Kernel&& kernel) {
  return misuse([&] { host::run({1, 1, 0}, kernel); });
}

#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(misuse, caller_outside_its_own_mask) {
  const std::string text = misuse_in([] {
    if (lane_id() == 5) ballot(0xf, true);
  });
  EXPECT_SAYS(text, "block 0 warp 0 lane 5: ballot(mask 0x0000000f) at ");
  EXPECT_SAYS(text, "misuse_test.cpp");
  EXPECT_SAYS(text, "not in its own mask");
}

TEST(misuse, shuffle_from_outside_the_mask) {
  EXPECT_SAYS(misuse_in([] {
                if (lane_id() < 4) shuffle(0xf, 1, 9);
              }),
              "lane 9, is not in the mask");
  EXPECT_SAYS(misuse_in([] { shuffle(full_mask, 1, 32); }), "lane 32, is not in the mask");
}

TEST(misuse, different_calls_with_one_mask) {
  const std::string text = misuse_in([] {
    if (lane_id() % 2 == 0) {
      ballot(full_mask, true);
    } else {
      sync_warp();
    }
  });
  EXPECT_SAYS(text, "ballot");
  EXPECT_SAYS(text, "sync_warp");
}

TEST(misuse, masks_of_others_outside_a_launch) {
  EXPECT_EQ(lane_id(), 0u);
  EXPECT_EQ(active_mask(), 1u);
  EXPECT_EQ(ballot(1, true), 1u);
  EXPECT_EQ(shuffle(1, 7, 0), 7);
  EXPECT_EQ(match_any(1, 99), 1u);
  sync_block();
  EXPECT_SAYS(misuse([] { sync_warp(); }), "outside a launch");
  EXPECT_SAYS(misuse([] { shuffle(1, 7, 1); }), "outside a launch");
  EXPECT_SAYS(misuse([] { block_shared<int>(); }), "outside a launch");
}

TEST(misuse, launch_inside_a_launch) {
  EXPECT_SAYS(misuse_in([] { host::run({1, 1, 0}, [] {}); }), "from a lane");
}

struct large {
  char bytes[30 * 1024];
};
struct larger {
  char bytes[30 * 1024];
};

TEST(misuse, too_much_shared_memory) {
  try {
    host::run({1, 1, 0}, [] {
      block_shared<large>().bytes[0] = 1;
      block_shared<larger>().bytes[0] = 1;
    });
    FAIL();
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::out_of_memory) << e.what();
  }
}

TEST(misuse, launches_of_nothing_or_too_much) {
  for (const host::launch_shape shape : {host::launch_shape{0, 1, 0}, {1, 0, 0}, {1, 33, 0}}) {
    EXPECT_THROW(host::run(shape, [] {}), error);
  }
}

}  // namespace
}  // namespace grosr::simt
