// Kernels of one stream run in order, those of two streams side by side; bad launches say why.
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(streams);

struct append {
  std::uint32_t* log;
  std::uint32_t value;
  GROSR_DEVICE void operator()() const {
    if (thread_id() == 0) log[1 + log[0]++] = value;
  }
};

TEST_P(streams, run_in_order) {
  auto log = make<std::uint32_t>(101);
  stream s(where());
  EXPECT_TRUE(s.done());
  for (std::uint32_t i = 0; i < 100; ++i) launch(s, {1, 32}, append{log.data(), i});
  s.wait();
  EXPECT_TRUE(s.done());
  const auto all = contents(log);
  EXPECT_EQ(all[0], 100u);
  for (std::uint32_t i = 0; i < 100; ++i) ASSERT_EQ(all[1 + i], i);
}

struct meet {
  std::uint32_t* mine;
  std::uint32_t* other;
  GROSR_DEVICE void operator()() const {
    atomic_ref(*mine).store(1, release);
    wait_until([&] { return atomic_ref(*other).load(acquire) != 0; }, forever, nullptr,
               "the other stream");
  }
};

TEST_P(streams, run_side_by_side) {
  auto flags = make<std::uint32_t>(2);
  fit<1024, 1, meet>(where(), 32);  // loaded before the first is resident
  stream a(where()), b(where());
  launch(a, {1, 32}, meet{flags.data(), flags.data() + 1});
  launch(b, {1, 32}, meet{flags.data() + 1, flags.data()});
  a.wait();
  b.wait();
}

TEST_P(streams, can_be_moved) {
  auto log = make<std::uint32_t>(3);
  stream a(where());
  launch(a, {1, 32}, append{log.data(), 7});
  stream b(std::move(a));
  launch(b, {1, 32}, append{log.data(), 8});
  b.wait();
  EXPECT_EQ(contents(log), (std::vector<std::uint32_t>{2, 7, 8}));
  EXPECT_EQ(b.where(), where());
}

TEST_P(streams, refuse_bad_shapes) {
  auto log = make<std::uint32_t>(3);
  stream s(where());
  for (const shape bad : {shape{0, 32}, shape{1, 0}, shape{1, 33}, shape{1, 2048}}) {
    try {
      launch(s, bad, append{log.data(), 1});
      FAIL();
    } catch (const error& e) {
      EXPECT_EQ(e.code(), errc::invalid_option);
      EXPECT_NE(std::string(e.what()).find(where().name()), std::string::npos) << e.what();
    }
  }
  s.wait();
  EXPECT_EQ(contents(log)[0], 0u);
}

// Far more blocks than processors; each waits until all have come.
struct grid_barrier {
  std::uint32_t* arrived;
  GROSR_DEVICE void operator()() const {
    if (thread_id() == 0) {
      atomic_ref(*arrived).fetch_add(1, acq_rel);
      wait_until([&] { return atomic_ref(*arrived).load(acquire) == grid_size(); }, forever,
                 nullptr, "all blocks");
    }
    sync_block();
  }
};

TEST_P(streams, make_progress_in_all_blocks_at_once) {
  auto arrived = make<std::uint32_t>(1);
  run(48, 64, grid_barrier{arrived.data()});
  EXPECT_EQ(contents(arrived)[0], 48u);
}

TEST_P(streams, know_what_fits) {
  const kernel_fit f = fit<1024, 1, meet>(where(), 32);
  EXPECT_GE(f.blocks_per_sm, 1u);
}

}  // namespace
}  // namespace grosr::simt
