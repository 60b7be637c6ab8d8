// Tasks run after what a stream or an event stands for, streams go on after the tasks of a ticket,
// and each sees what the other wrote.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "run/tasks.hpp"
#include "support/scale.hpp"
#include "support/seeds.hpp"

#if defined(__CUDACC__)
#include <cuda_runtime.h>
#endif

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

/// Adds 1 to a number that was `before`, without atomics; counts in `wrong` if it was another.
struct step {
  std::uint32_t* number;
  std::uint32_t before;
  std::uint32_t* wrong;
  GROSR_DEVICE void take() const {
    if (*number != before) add_one(wrong);
    *number = before + 1;
  }
  GROSR_DEVICE void operator()(auto&) const { take(); }
};

struct step_kernel {
  step s;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() == 0) s.take();
  }
};

/// to[i] = from[i] + 1 for all i of a warp's share.
struct share {
  static constexpr grosr::width width = grosr::width::warp;
  const std::uint32_t* from;
  std::uint32_t* to;
  std::uint32_t first;
  GROSR_DEVICE void operator()(auto& context) const {
    to[first + context.rank()] = from[first + context.rank()] + 1;
  }
};

struct share_kernel {
  const std::uint32_t* from;
  std::uint32_t* to;
  GROSR_DEVICE void operator()() const {
    const std::uint32_t i = simt::block_id() * simt::block_size() + simt::thread_id();
    to[i] = from[i] + 1;
  }
};

/// Keeps its stream until the host opens the gate.
struct gate_kernel {
  const std::uint32_t* gate;
  GROSR_DEVICE void operator()() const {
    simt::atomic_ref<std::uint32_t, simt::scope::system> word(const_cast<std::uint32_t&>(*gate));
    if (simt::thread_id() == 0)
      simt::wait_until([&] { return word.load(simt::acquire) != 0; }, simt::forever, nullptr,
                       "the gate");
  }
};

using stream_runtime = runtime<step, share, gated>;

class interop : public runtime_test {
 protected:
  void SetUp() override {
    runtime_test::SetUp();
    if (IsSkipped()) return;
    // Loaded before a kernel is resident, or a stream waits.
    simt::fit<1024, 1, step_kernel>(where(), 32);
    simt::fit<1024, 1, share_kernel>(where(), 32);
    simt::fit<1024, 1, gate_kernel>(where(), 32);
  }

  std::unique_ptr<stream_runtime> start_here(std::chrono::microseconds idle = 20ms) {
    runtime_options o = small_options();
    o.idle_timeout = idle;
    return std::make_unique<stream_runtime>(where(), o);
  }

  struct numbers {
    simt::buffer<std::uint32_t> all;  // the number, and how often it was wrong
    step at(std::uint32_t before) const { return {all.data(), before, all.data() + 1}; }
    void expect(std::uint32_t n) const { EXPECT_EQ(contents(all), (std::vector{n, 0u})); }
  };
  numbers make_number() { return {make<std::uint32_t>(2)}; }

  struct gate {
    simt::buffer<std::uint32_t> word;
    void open() const {
      simt::atomic_ref<std::uint32_t, simt::scope::system>(word[0]).store(1, simt::release);
    }
    ~gate() {
      if (word.data()) open();
    }
  };
  gate make_gate() { return {make<std::uint32_t>(1, simt::space::pinned)}; }

  static void launch(simt::stream& s, const step& what) {
    simt::launch(s, {1, 32}, step_kernel{what});
  }
  static void hold(simt::stream& s, const gate& g) {
    simt::launch(s, {1, 32}, gate_kernel{g.word.data()});
  }
};
INSTANTIATE_TEST_SUITE_P(on, interop, ::testing::Values("host:0", "cuda:0"), device_test_name);

TEST_P(interop, tasks_wait_for_a_stream_and_it_for_them) {
  const numbers n = make_number();
  const gate g = make_gate();
  auto rt = start_here();
  simt::stream s(where());
  hold(s, g);
  launch(s, n.at(0));
  const ticket t = rt->submit_after(s, n.at(1));
  t.record(s);
  launch(s, n.at(2));
  EXPECT_FALSE(t.wait_for(20ms));
  EXPECT_FALSE(s.done());
  g.open();
  s.wait();
  EXPECT_TRUE(t.done());
  EXPECT_FALSE(t.failed());
  n.expect(3);
}

// Data as wide as several packets of tasks, there and back many times, and no wait of the host.
TEST_P(interop, both_see_what_the_other_wrote) {
  constexpr std::uint32_t size = 32 * 48;
  auto& a = keep<std::uint32_t>(size);
  auto& b = keep<std::uint32_t>(size);
  std::vector<share> tasks;
  for (std::uint32_t i = 0; i < size; i += 32) tasks.push_back({a.data(), b.data(), i});
  auto rt = start_here();
  simt::stream s(where());
  const auto rounds = static_cast<std::uint32_t>(scaled(150, 6));
  for (std::uint32_t i = 0; i < rounds; ++i) {
    const ticket t = rt->submit_after(s, tasks);
    t.record(s);
    simt::launch(s, {size / 32, 32}, share_kernel{b.data(), a.data()});
  }
  s.wait();
  EXPECT_TRUE(all_are(a, 2 * rounds));
}

// More streams than a GPU has queues for them, each with a chain of its own, and a kernel that
// would leave at once.
TEST_P(interop, many_streams_at_once) {
  constexpr std::uint32_t count = 24;
  const auto rounds = static_cast<std::uint32_t>(scaled(8, 2));
  std::vector<numbers> n;
  for (std::uint32_t i = 0; i < count; ++i) n.push_back(make_number());
  const gate g = make_gate();
  auto rt = start_here(200us);
  std::vector<simt::stream> streams;
  for (std::uint32_t i = 0; i < count; ++i) streams.emplace_back(where());
  hold(streams[0], g);
  std::vector<ticket> tickets;
  for (std::uint32_t r = 0; r < rounds; ++r)
    for (std::uint32_t i = 0; i < count; ++i) {
      launch(streams[i], n[i].at(3 * r));
      tickets.push_back(rt->submit_after(streams[i], n[i].at(3 * r + 1)));
      tickets.back().record(streams[i]);
      launch(streams[i], n[i].at(3 * r + 2));
    }
  std::this_thread::sleep_for(5ms);
  g.open();
  for (std::uint32_t i = 0; i < count; ++i) {
    streams[i].wait();
    n[i].expect(3 * rounds);
  }
  for (const ticket& t : tickets) EXPECT_TRUE(t.done());
}

// One chain through streams and tasks in any order.
TEST_P(interop, random_chains_keep_their_order) {
  const numbers n = make_number();
  auto rt = start_here(300us);
  std::vector<simt::stream> streams;
  for (int i = 0; i < 12; ++i) streams.emplace_back(where());
  std::mt19937 random(static_cast<unsigned>(first_of_slice(1 << 20, 1)));
  std::vector<ticket> tickets;
  std::uint32_t at = 0;
  std::size_t last = 0;  // the stream that the chain is in
  const auto rounds = static_cast<std::uint32_t>(scaled(1000, 60));
  for (std::uint32_t r = 0; r < rounds; ++r) {
    for (unsigned k = random() % 3; k > 0; --k) launch(streams[last], n.at(at++));
    const ticket t = rt->submit_after(streams[last], n.at(at++));
    tickets.push_back(t);
    last = random() % streams.size();
    t.record(streams[last]);
    if (random() % 8 == 0) t.record(streams[random() % streams.size()]);
    if (random() % 32 == 0) t.wait();
    if (random() % 64 == 0) std::this_thread::sleep_for(1ms);
    if (r >= 200) tickets[r - 200].wait();
  }
  launch(streams[last], n.at(at++));
  for (simt::stream& s : streams) s.wait();
  n.expect(at);
}

TEST_P(interop, many_threads_at_once) {
  constexpr std::uint32_t count = 6;
  const auto rounds = static_cast<std::uint32_t>(scaled(60, 10));
  std::vector<numbers> n;
  for (std::uint32_t i = 0; i < count; ++i) n.push_back(make_number());
  auto rt = start_here();
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      simt::stream s(where());
      for (std::uint32_t r = 0; r < rounds; ++r) {
        const ticket t = rt->submit_after(s, n[i].at(2 * r));
        t.record(s);
        launch(s, n[i].at(2 * r + 1));
        if (r % 20 == 19) rt->wait_all();
      }
      s.wait();
    });
  for (std::thread& t : threads) t.join();
  for (std::uint32_t i = 0; i < count; ++i) n[i].expect(2 * rounds);
}

// Whoever parks comes before a stream waits, and the kernel comes back for it, or after.
TEST_P(interop, parks_meet_streams_that_wait) {
  const auto rounds = static_cast<std::uint32_t>(scaled(200, 20));
  const numbers n = make_number();
  auto rt = start_here();
  std::atomic<bool> over{false};
  std::thread parks([&] {
    while (!over) {
      try {
        rt->park();
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::misuse) << e.what();
      }
      std::this_thread::sleep_for(100us);
    }
  });
  simt::stream s(where());
  for (std::uint32_t r = 0; r < rounds; ++r) {
    rt->submit_after(s, n.at(r)).record(s);
    s.wait();
  }
  over = true;
  parks.join();
  n.expect(rounds);
}

// Tasks that are due while the kernel is asked to leave, and cannot yet, bring it back.
TEST_P(interop, tasks_come_due_while_the_kernel_is_to_leave) {
  const numbers n = make_number();
  const gate begun = make_gate(), g = make_gate();
  const auto passed = make<std::uint32_t>(1);
  auto rt = start_here();
  simt::stream s(where());
  rt->submit(gated{g.word.data(), passed.data(), begun.word.data()});
  while (std::atomic_ref(begun.word[0]).load() == 0) std::this_thread::sleep_for(1ms);
  std::thread parks([&] { rt->park(); });
  std::this_thread::sleep_for(20ms);
  const ticket due = rt->submit_after(s, n.at(0));
  std::this_thread::sleep_for(20ms);
  g.open();
  parks.join();
  for (int i = 0; i < 5000 && !due.done(); ++i) std::this_thread::sleep_for(1ms);  // nobody waits
  EXPECT_TRUE(due.done());
  n.expect(1);
}

// An idle kernel leaves while tasks wait for a stream, and stays while a stream waits for them.
TEST_P(interop, the_kernel_leaves_and_stays) {
  const numbers n = make_number();
  const gate g = make_gate(), h = make_gate();
  auto rt = start_here(500us);
  simt::stream s(where()), other(where());
  rt->submit(n.at(0)).wait();
  hold(s, g);
  const ticket first = rt->submit_after(s, n.at(1));
  for (int i = 0; i < 2000 && rt->resident(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(rt->resident());
  g.open();
  first.wait();
  hold(s, h);
  const ticket second = rt->submit_after(s, n.at(2));
  second.record(other);
  launch(other, n.at(3));
  std::this_thread::sleep_for(30ms);
  if (where().is_cuda()) {
    EXPECT_TRUE(rt->resident());
    EXPECT_EQ(error_of([&] { rt->park(); }).code(), errc::misuse);
  }
  h.open();
  other.wait();
  n.expect(4);
  for (int i = 0; i < 2000 && rt->resident(); ++i) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(rt->resident());
  rt->park();
}

TEST_P(interop, all_and_the_end_are_waited_for) {
  const numbers n = make_number();
  const gate g = make_gate(), h = make_gate();
  simt::stream s(where());
  auto rt = start_here();
  hold(s, g);
  rt->submit_after(s, n.at(0));
  EXPECT_FALSE(rt->wait_all_for(20ms));
  g.open();
  rt->wait_all();
  n.expect(1);
  hold(s, h);
  const ticket t = rt->submit_after(s, n.at(1));
  t.record(s);
  launch(s, n.at(2));
  std::thread opener([&] {
    std::this_thread::sleep_for(30ms);
    h.open();
  });
  rt.reset();
  opener.join();
  s.wait();
  n.expect(3);
}

TEST_P(interop, a_stop_with_a_deadline_drops_them) {
  const numbers n = make_number();
  const gate g = make_gate();
  simt::stream s(where()), other(where());
  auto rt = start_here();
  hold(s, g);
  const ticket t = rt->submit_after(s, n.at(0));
  t.record(other);
  const error e = error_of([&] { rt->stop(50ms); });
  EXPECT_EQ(e.code(), errc::timed_out);
  EXPECT_NE(std::string(e.what()).find("1 of 1 tasks not run"), std::string::npos) << e.what();
  other.wait();  // it was released
  EXPECT_FALSE(t.done());
  EXPECT_EQ(error_of([&] { t.wait(); }).code(), errc::stopped);
  EXPECT_EQ(error_of([&] { t.record(other); }).code(), errc::stopped);
  EXPECT_EQ(error_of([&] { rt->submit_after(s, n.at(0)); }).code(), errc::stopped);
  g.open();
  s.wait();
  rt.reset();
  n.expect(0);
}

// The watchdog ends the runtime: streams go on, and the tickets say why their tasks did not run.
TEST_P(interop, a_lost_runtime_releases_streams) {
  const numbers n = make_number();
  const gate g = make_gate();
  auto& passed = keep<std::uint32_t>(1);
  simt::stream s(where()), other(where());
  runtime_options o = small_options();
  o.watchdog = 200ms;
  stream_runtime rt(where(), o);
  const gate stream_gate = make_gate();
  const ticket stuck = rt.submit(gated{g.word.data(), passed.data()});
  stuck.record(s);
  launch(s, n.at(0));
  hold(other, stream_gate);
  const ticket deferred = rt.submit_after(other, n.at(1));
  s.wait();
  EXPECT_FALSE(stuck.done());
  EXPECT_EQ(error_of([&] { stuck.wait(); }).code(), errc::watchdog);
  EXPECT_EQ(error_of([&] { deferred.wait(); }).code(), errc::watchdog);
  EXPECT_EQ(error_of([&] { deferred.record(s); }).code(), errc::watchdog);
  stream_gate.open();
  other.wait();
  n.expect(1);
}

TEST_P(interop, only_so_many_wait) {
  const numbers n = make_number();
  const gate g = make_gate();
  simt::stream s(where());
  auto rt = start_here();
  hold(s, g);
  std::vector<ticket> tickets;
  for (std::uint32_t i = 0; i < 256; ++i) {
    tickets.push_back(rt->submit_after(s, n.at(i)));
    tickets.back().record(s);
  }
  const error e = error_of([&] { rt->submit_after(s, n.at(256)); });
  EXPECT_EQ(e.code(), errc::out_of_memory);
  EXPECT_NE(std::string(e.what()).find("256"), std::string::npos) << e.what();
  g.open();
  s.wait();
  rt->submit_after(s, n.at(256)).wait();
  n.expect(257);
}

TEST_P(interop, spans_and_levels_and_nothing) {
  const auto count = static_cast<std::uint32_t>(scaled(4000, 600) / (slowdown > 1 ? 4 : 1));
  auto& a = keep<std::uint32_t>(32 * count);
  auto& b = keep<std::uint32_t>(32 * count);
  std::vector<share> tasks;
  for (std::uint32_t i = 0; i < count; ++i) tasks.push_back({a.data(), b.data(), 32 * i});
  auto rt = start_here();
  simt::stream s(where());
  const ticket t = rt->submit_after(s, tasks, priority::urgent);
  EXPECT_TRUE(rt->submit_after(s, std::vector<share>{}).done());
  ticket{}.record(s);
  t.record(s);
  s.wait();
  EXPECT_TRUE(all_are(b, 1u));
  EXPECT_EQ(rt->stats().submitted, count);
}

TEST_P(interop, says_what_cannot_be_waited_for) {
  const numbers n = make_number();
  auto rt = start_here();
  const ticket t = rt->submit(n.at(0));
  t.wait();
  const auto expect = [&](errc code, const std::string& words, const simt::moment& when) {
    const error e = error_of([&] { rt->submit_after(when, n.at(1)); });
    EXPECT_EQ(e.code(), code) << e.what();
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    if (when.is_event()) return;
    EXPECT_EQ(error_of([&] { t.record(when.in()); }).code(), code);
  };
  if (!where().is_cuda()) {
    expect(errc::invalid_option, "a simt::stream", static_cast<CUstream_st*>(nullptr));
    expect(errc::invalid_option, "a simt::stream", static_cast<CUevent_st*>(nullptr));
  }
#if defined(__CUDACC__)
  if (where().is_cuda()) {
    simt::stream host(device("host:0"));
    expect(errc::invalid_option, "host:0", host);
    expect(errc::misuse, "no event", cudaEvent_t{});
    cudaStream_t s{};
    ASSERT_EQ(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
    cudaEvent_t e{};
    ASSERT_EQ(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), cudaSuccess);
    rt->submit_after(e, n.at(1)).wait();  // never recorded: to CUDA it has happened
    cudaGraph_t graph{};
    ASSERT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    expect(errc::misuse, "captured", s);
    ASSERT_EQ(cudaStreamEndCapture(s, &graph), cudaSuccess);  // it was not harmed
    cudaGraphDestroy(graph);
    ASSERT_EQ(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(e, s), cudaSuccess);
    expect(errc::misuse, "captured", e);
    EXPECT_EQ(cudaStreamEndCapture(s, &graph), cudaErrorStreamCaptureInvalidated);  // CUDA's way
    cudaGetLastError();
    rt->submit_after(s, n.at(2)).wait();
    rt->stop();
    n.expect(3);
    cudaEventDestroy(e);
    cudaStreamDestroy(s);
    return;
  }
#endif
  rt->stop();
  EXPECT_EQ(error_of([&] {
              simt::stream s(where());
              rt->submit_after(s, n.at(1));
            }).code(),
            errc::stopped);
  simt::stream s(where());
  t.record(s);  // its tasks have run
  s.wait();
  n.expect(1);
}

// What a stream of the host does not come to: the ticket says that it failed.
TEST_P(interop, behind_a_failed_stream_a_ticket_fails) {
  if (where().is_cuda()) GTEST_SKIP() << "there, a stream fails with the device";
  const numbers n = make_number();
  const gate g = make_gate();
  auto rt = start_here();
  {
    simt::stream s(where());
    hold(s, g);
    s.call_host([] { throw error(errc::misuse, "the function's own"); });
    const ticket t = rt->submit_after(s, n.at(0));
    g.open();
    EXPECT_TRUE(t.wait_for(30s));
    EXPECT_TRUE(t.failed());
    EXPECT_THROW(s.wait(), error);
  }
  rt->wait_all();
  n.expect(0);
}

#if defined(__CUDACC__)

// An event counts as it was at the call: it may be recorded again, and destroyed.
TEST_P(interop, events_count_as_they_were) {
  if (!where().is_cuda()) GTEST_SKIP() << "events are CUDA's";
  const numbers n = make_number();
  const gate g = make_gate(), h = make_gate();
  auto rt = start_here();
  simt::stream a(where()), b(where());
  cudaEvent_t e{};
  ASSERT_EQ(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), cudaSuccess);
  hold(a, g);
  launch(a, n.at(0));
  ASSERT_EQ(cudaEventRecord(e, static_cast<cudaStream_t>(a.native())), cudaSuccess);
  const ticket t = rt->submit_after(e, n.at(1));
  hold(b, h);
  ASSERT_EQ(cudaEventRecord(e, static_cast<cudaStream_t>(b.native())), cudaSuccess);
  EXPECT_FALSE(t.wait_for(10ms));
  g.open();
  EXPECT_TRUE(t.wait_for(30s));
  const ticket u = rt->submit_after(e, n.at(2));
  cudaEventDestroy(e);
  EXPECT_FALSE(u.wait_for(10ms));
  h.open();
  u.wait();
  n.expect(3);
}

// The default streams are streams like others; a kernel that is resident does not hold them up.
TEST_P(interop, default_streams_work) {
  if (!where().is_cuda()) GTEST_SKIP() << "they are CUDA's";
  const numbers n = make_number();
  auto rt = start_here(0us);
  std::uint32_t at = 0;
  for (cudaStream_t s : {cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread})
    for (int i = 0; i < 20; ++i) {
      simt::detail::entry<step_kernel, 1024, 1><<<1, 32, 0, s>>>(step_kernel{n.at(at++)});
      const ticket t = rt->submit_after(s, n.at(at++));
      t.record(s);
      if (i == 19) cudaStreamSynchronize(s);
    }
  n.expect(at);
  rt->park();
}

#endif

}  // namespace
}  // namespace grosr::testing
