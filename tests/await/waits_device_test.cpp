// Calls that are awaited for long, many of them, and how the waits end: by time, by the server, by
// the runtime, by who cancels.
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "await/small_runtime.hpp"
#include "grosr/await/awaited.hpp"
#include "grosr/run/runtime.hpp"
#include "grosr/sys/server.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

namespace grosr {
namespace {

GROSR_DEVICE_SUITE(awaited_waits);

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

using testing::small;

/// Sleeps so often, and gives how often it did.
struct sleeps {
  using result = long;
  sys::server_ref sys;
  int ms;
  std::uint32_t times, done;
  long code;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (code != 0) return static_cast<int>(code);
    if (done == times) {
      context.give(long{done});
      return 0;
    }
    auto& next = context.join(sleeps{sys, ms, times, done + 1, -1});
    if (ms == 0)
      sys::nothing(context.await(sys, &next.code));
    else
      sys::poll(context.await(sys, &next.code), nullptr, 0, ms);
    return 0;
  }
};

TEST_P(awaited_waits, of_thousands_of_tasks_pass_together) {
  const auto count = static_cast<std::uint32_t>(testing::scaled(20'000, 1000));
  sys::server server(where());
  runtime<sleeps, awaited> rt(where(), small(where()));
  const auto began = clock::now();
  auto ticket = rt.submit(std::vector<sleeps>(count, sleeps{server.ref(), 200, 1, 0, 0}));
  ticket.wait();  // the tasks have ended, and the calls have not
  rt.wait_all();
  const auto took = clock::now() - began;
  rt.park();
  EXPECT_EQ(rt.stats().awaited, count);
  EXPECT_EQ(rt.stats().failed, 0u);
  EXPECT_GE(took, 200ms);
  EXPECT_LT(took, 20s);  // one after another they would take an hour
}

TEST_P(awaited_waits, follow_each_other) {
  sys::server server(where());
  runtime<sleeps, awaited> rt(where(), small(where()));
  std::vector<future<long>> all;
  for (std::uint32_t i = 0; i < 40; ++i)
    all.push_back(rt.fork(sleeps{server.ref(), static_cast<int>(i % 4), i % 7, 0, 0}));
  for (std::uint32_t i = 0; i < 40; ++i) ASSERT_EQ(all[i].get(), i % 7);
}

TEST_P(awaited_waits, are_found_under_many_schedules) {
  if (where().is_cuda()) GTEST_SKIP() << "schedules of the host backend";
  sys::options so;
  so.threads = 1;
  sys::server server(where(), so);
  testing::for_seeds(
      1000,
      [&] {
        runtime<sleeps, awaited> rt(where(), small(where()));
        std::vector<future<long>> all;
        for (std::uint32_t i = 0; i < 8; ++i)
          all.push_back(rt.fork(sleeps{server.ref(), 0, i % 5, 0, 0}));
        for (std::uint32_t i = 0; i < 8; ++i) ASSERT_EQ(all[i].get(), i % 5);
        rt.wait_all();
      },
      20);
}

/// Waits for a message that nobody sends.
struct silent {
  using result = long;
  long bytes;
  std::uint64_t text;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    if (bytes < 0) return static_cast<int>(bytes);
    context.give(bytes);
    return 0;
  }
};
struct listens {
  using result = long;
  sys::server_ref sys;
  int peer;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(silent{0, 0});
    sys::recv(context.await(sys, &next.bytes), peer, &next.text, 8, 0);
  }
};
struct endless {
  const std::uint32_t* stop;
  GROSR_DEVICE void operator()(auto& context) const {
    while (!context.aborted() &&
           simt::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(*stop)).load(simt::relaxed) ==
               0)
      simt::pause(8, "the test");
  }
};

struct peers {
  int at[2];
  peers() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, at), 0); }
  ~peers() {
    ::close(at[0]);
    ::close(at[1]);
  }
};
sys::options with_network() {
  sys::options o;
  o.policy.network = true;
  return o;
}

TEST_P(awaited_waits, end_with_the_server) {
  const peers p;
  sys::server server(where(), with_network());
  server.grant(p.at[0]);
  runtime<listens, silent, awaited> rt(where(), small(where()));
  auto waits = rt.fork(listens{server.ref(), p.at[0]});
  EXPECT_FALSE(waits.wait_for(50ms));
  server.stop();
  EXPECT_EQ(waits.status(), -ESHUTDOWN);
  EXPECT_EQ(rt.fork(listens{server.ref(), p.at[0]}).status(), -ESHUTDOWN);
}

TEST_P(awaited_waits, end_with_the_runtime) {
  const peers p;
  sys::server server(where(), with_network());
  server.grant(p.at[0]);
  {
    runtime<listens, silent, awaited> rt(where(), small(where()));
    rt.submit(listens{server.ref(), p.at[0]});
    EXPECT_FALSE(rt.wait_all_for(50ms));
    EXPECT_EQ(testing::error_of([&] { rt.stop(100ms); }).code(), errc::timed_out);
  }
  // Nobody waits for the message any more, not another runtime either; the server goes on.
  runtime<sleeps, awaited> rt(where(), small(where()));
  EXPECT_EQ(rt.fork(sleeps{server.ref(), 1, 2, 0, 0}).get(), 2);
  EXPECT_EQ(::send(p.at[1], "nothing", 8, 0), 8);
  server.drain(10s);
  EXPECT_EQ(rt.fork(sleeps{server.ref(), 1, 2, 0, 0}).get(), 2);
  EXPECT_TRUE(rt.wait_all_for(10s));
  EXPECT_TRUE(rt.errors().empty());
}

/// Writes a file in place.
struct writes {
  using result = long;
  sys::server_ref sys;
  int file;
  GROSR_DEVICE void operator()(auto& context) const {
    context.give(sys::pwrite(sys, file, "text", 4, 0));
  }
};

// Calls that hold all the chunks that they may: others find one all the same, and none is lost.
TEST_P(awaited_waits, leave_room_for_calls_in_place) {
  const auto count = static_cast<std::uint32_t>(testing::scaled(800, 300));
  const peers p;
  char name[] = "/tmp/grosr.XXXXXX";
  const int file = ::mkstemp(name);
  ::unlink(name);
  auto so = with_network();
  so.chunks = {128, 64, 64};
  so.patience = 100ms;
  sys::server server(where(), so);
  server.grant(p.at[0]);
  server.grant(file);
  runtime<listens, silent, writes, awaited> rt(where(), small(where()));
  std::vector<future<long>> all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(rt.fork(listens{server.ref(), p.at[0]}));
  std::uint32_t refused = 0;
  const auto until = clock::now() + 60s;
  while (refused < count - 256) {
    ASSERT_LT(clock::now(), until) << refused;
    refused = 0;
    for (auto& f : all)
      if (f.ready() && f.status() == -EAGAIN) ++refused;
    std::this_thread::sleep_for(1ms);
  }
  for (int i = 0; i < 100; ++i) ASSERT_EQ(rt.fork(writes{server.ref(), file}).get(), 4);
  server.stop();
  std::uint32_t ended = 0;
  refused = 0;
  for (auto& f : all) {
    if (f.status() == -ESHUTDOWN) ++ended;
    if (f.status() == -EAGAIN) ++refused;
  }
  EXPECT_EQ(ended + refused, count);
  EXPECT_EQ(ended, 96u + 32 + 32);  // three quarters of the chunks, in words of 32
  ::close(file);
}

TEST_P(awaited_waits, are_no_reason_for_the_watchdog) {
  const peers p;
  sys::server server(where(), with_network());
  server.grant(p.at[0]);
  auto o = small(where());
  o.watchdog = std::chrono::milliseconds(100) * testing::slowdown;
  runtime<listens, silent, sleeps, awaited> rt(where(), o);
  auto waits = rt.fork(listens{server.ref(), p.at[0]});
  EXPECT_FALSE(waits.wait_for(4 * o.watchdog));
  EXPECT_EQ(rt.fork(sleeps{server.ref(), 1, 2, 0, 0}).get(), 2);
  EXPECT_EQ(::send(p.at[1], "nothing", 8, 0), 8);
  EXPECT_EQ(waits.get(), 8);
}

TEST_P(awaited_waits, are_no_reason_for_the_watchdog_after_a_park) {
  const peers p;
  sys::server server(where(), with_network());
  server.grant(p.at[0]);
  auto o = small(where());
  o.watchdog = std::chrono::milliseconds(100) * testing::slowdown;
  runtime<listens, silent, sleeps, awaited> rt(where(), o);
  auto waits = rt.fork(listens{server.ref(), p.at[0]});
  for (int turn = 0; turn < 5; ++turn) {
    for (int i = 0; i < 20; ++i) rt.submit(sleeps{server.ref(), 0, 50, 0, 0});
    rt.park();
  }
  EXPECT_FALSE(waits.wait_for(4 * o.watchdog));
  EXPECT_EQ(::send(p.at[1], "nothing", 8, 0), 8);
  EXPECT_EQ(waits.get(), 8);
}

TEST_P(awaited_waits, do_not_hide_a_task_that_hangs) {
  const peers p;
  simt::buffer<std::uint32_t> stop(where(), simt::space::device, 1);
  stop.copy_from(std::vector<std::uint32_t>(1));
  sys::server server(where(), with_network());
  server.grant(p.at[0]);
  auto o = small(where());
  o.watchdog = std::chrono::milliseconds(200) * testing::slowdown;
  runtime<listens, silent, endless, awaited> rt(where(), o);
  auto waits = rt.fork(listens{server.ref(), p.at[0]});
  auto hangs = rt.submit(endless{stop.data()});
  EXPECT_EQ(testing::error_of([&] { hangs.wait(); }).code(), errc::watchdog);
  EXPECT_EQ(testing::error_of([&] { waits.wait(); }).code(), errc::watchdog);
  server.stop();  // which would wait for the message
}

TEST_P(awaited_waits, outlast_a_parked_kernel) {
  const peers p;
  sys::server server(where(), with_network());
  server.grant(p.at[0]);
  auto o = small(where());
  o.idle_timeout = 1ms;
  runtime<listens, silent, sleeps, awaited> rt(where(), o);
  for (int turn = 0; turn < 5; ++turn) {
    auto waits = rt.fork(listens{server.ref(), p.at[0]});
    EXPECT_EQ(rt.fork(sleeps{server.ref(), 1, 2, 0, 0}).get(), 2);
    EXPECT_FALSE(waits.ready());
    rt.park();
    EXPECT_FALSE(rt.resident());
    EXPECT_EQ(::send(p.at[1], "nothing", 8, 0), 8);
    std::this_thread::sleep_for(5ms);
    EXPECT_FALSE(waits.ready());  // nobody has asked for the kernel again
    EXPECT_EQ(waits.get(), 8);
  }
}

/// One that is cancelled by a task that it waits for.
struct cancels {
  using result = void;
  join_scope scope;
  GROSR_DEVICE void operator()(auto& context) const { context.cancel(scope); }
};
struct cancelled {
  using result = long;
  long bytes;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.status() != 0) return context.status();
    context.give(bytes);
    return 0;
  }
};
struct may_be_cancelled {
  using result = long;
  sys::server_ref sys;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(cancelled{-1});
    context.fork(cancels{context.scope()});
    sys::poll(context.await(sys, &next.bytes), nullptr, 0, 20);
  }
};

TEST_P(awaited_waits, of_a_join_that_is_cancelled_end_all_the_same) {
  sys::server server(where());
  runtime<may_be_cancelled, cancels, cancelled, awaited> rt(where(), small(where()));
  std::vector<future<long>> all;
  for (int i = 0; i < 50; ++i) all.push_back(rt.fork(may_be_cancelled{server.ref()}));
  for (auto& f : all) EXPECT_EQ(f.status(), -ECANCELED);
}

}  // namespace
}  // namespace grosr
