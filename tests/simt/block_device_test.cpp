// sync_block orders a block's memory, waits for nobody who left, and block_shared is the block's
// own.
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "support/devices.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(block);

struct row {
  unsigned cell[256];
};
struct total {
  unsigned value;
};

// Each turn every thread reads what its right neighbour wrote in the turn before.
struct rotate {
  unsigned* out;
  GROSR_DEVICE void operator()() const {
    row& r = block_shared<row>();
    r.cell[thread_id()] = thread_id() + 1000 * block_id();
    sync_block();
    for (unsigned turn = 0; turn < 17; ++turn) {
      const unsigned next = r.cell[(thread_id() + 1) % block_size()];
      sync_block();
      r.cell[thread_id()] = next;
      sync_block();
    }
    out[block_id() * block_size() + thread_id()] = r.cell[thread_id()];
  }
};

TEST_P(block, barriers_order_shared_memory) {
  constexpr unsigned blocks = 9, threads = 256;
  auto out = make<unsigned>(blocks * threads);
  run(blocks, threads, rotate{out.data()});
  const auto all = contents(out);
  for (unsigned i = 0; i < all.size(); ++i) {
    ASSERT_EQ(all[i], (i % threads + 17) % threads + 1000 * (i / threads));
  }
}

struct two_objects {
  unsigned* wrong;
  GROSR_DEVICE void operator()() const {
    if (thread_id() == 0) block_shared<total>().value = block_id();
    block_shared<row>().cell[thread_id()] = thread_id();
    sync_block();
    bool good = block_shared<total>().value == block_id();
    for (unsigned i = 0; i < block_size(); ++i) good = good && block_shared<row>().cell[i] == i;
    if (!good) wrong[0] = 1;
  }
};

TEST_P(block, types_have_storage_of_their_own) {
  auto wrong = make<unsigned>(1);
  run(5, 128, two_objects{wrong.data()});
  EXPECT_EQ(contents(wrong)[0], 0u);
}

// Warp w takes part in w barriers, then leaves.
struct leave_early {
  unsigned* out;
  GROSR_DEVICE void operator()() const {
    for (unsigned turn = 0; turn < warp_id(); ++turn) {
      if (thread_id() == block_size() - 1) out[turn] += 1;
      sync_block();
    }
  }
};

TEST_P(block, barriers_do_not_wait_for_who_left) {
  auto out = make<unsigned>(8);
  run(1, 256, leave_early{out.data()});
  const auto all = contents(out);
  for (unsigned turn = 0; turn < 7; ++turn) EXPECT_EQ(all[turn], 1u);
}

}  // namespace
}  // namespace grosr::simt
