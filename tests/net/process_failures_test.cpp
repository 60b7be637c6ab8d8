// What one process of a world cannot do the others hear of, and none of them waits for ever.
#include "grosr/net/detail/world_core.hpp"
#include "net/in_memory.hpp"
#include "net/processes.hpp"

namespace grosr::net {
namespace {

using namespace tested;
using std::chrono::milliseconds;

/// The wait of one process in which ranks rest as `rests` says.
using rule = std::function<bool(std::uint32_t, run::deadline)>;
bool rested(std::uint32_t, run::deadline) { return true; }
bool waits(std::uint32_t, run::deadline until) {
  std::this_thread::sleep_until(*until);
  return false;
}
rule fails(errc code, const char* text) {
  return [=](std::uint32_t, run::deadline) -> bool { throw error(code, text); };
}

struct core : world_core {
  explicit core(memory_transport& t)
      : world_core(small_ranks(device("host:0"), 1), of(t), "none") {}
  static world_options of(memory_transport& t) {
    world_options o = options_with(t);
    o.collective_within = std::chrono::seconds(20);
    return o;
  }
  bool wait(const rule& r, run::deadline until = {}) {
    return wait_all(
        {.ask = [](std::uint32_t, rank_report*, run::deadline) { return true; }, .rests = r}, until,
        false);
  }
};

TEST(process_failures, for_good_end_the_wait_of_others) {
  std::atomic<int> ready{0};
  in_processes(3, [&](memory_transport& t) {
    core c(t);
    ++ready;
    while (ready != 3) std::this_thread::yield();
    if (t.process() == 1)
      expect_error(errc::device_lost, {"gone"}, [&] { c.wait(fails(errc::device_lost, "gone")); });
    else  // for an answer of process 1
      expect_error(errc::stopped, {"process 1 cannot go on: gone"}, [&] { c.wait(waits); });
    EXPECT_THROW(c.wait(rested), error);
  });
}

TEST(process_failures, that_pass_are_thrown_in_all_once) {
  in_processes(3, [](memory_transport& t) {
    core c(t);
    const bool mine = t.process() == 1;
    expect_error(errc::out_of_memory, {mine ? "full" : "in process 1: full"},
                 [&] { c.wait(mine ? fails(errc::out_of_memory, "full") : rested); });
    EXPECT_TRUE(c.wait(rested));
  });
}

TEST(process_failures, to_rest_in_time_end_the_wait_in_all) {
  in_processes(2, [](memory_transport& t) {
    core c(t);
    const auto soon = std::chrono::steady_clock::now() + milliseconds(50);
    EXPECT_FALSE(c.wait(t.process() == 0 ? waits : rested, soon));
    EXPECT_TRUE(c.wait(rested, std::chrono::steady_clock::now() + std::chrono::seconds(20)));
  });
}

TEST(process_failures, to_do_the_same_are_named) {
  in_processes(2, [](memory_transport& t) {
    core c(t);
    const layout shape(10, 2, distribution::block);
    expect_error(errc::misuse, {"waits for all", "makes an array"}, [&] {
      if (t.process() == 0)
        c.wait(rested);
      else
        c.add_array(shape, 8);
    });
    EXPECT_TRUE(c.wait(rested));
    EXPECT_EQ(c.add_array(shape, 8), 0u);
  });
}

TEST(process_failures, to_have_ranks_are_thrown_in_all) {
  in_processes(2, [](memory_transport& t) {
    expect_error(errc::invalid_option, {"given no ranks"}, [&] {
      world_core c(small_ranks(device("host:0"), t.process()), options_with(t), "none");
    });
  });
}

}  // namespace
}  // namespace grosr::net
