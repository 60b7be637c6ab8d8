// Calls that wait are resumed when they can go on, in order, once, and none is forgotten.
#include "sys/reactor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <random>
#include <thread>

#include "sys/waits.hpp"

namespace grosr::testing {
namespace {

using sys::reactor;

TEST(reactor, resumes_a_reader_when_there_is_something_to_read) {
  pipe_ends p;
  call c(reads(p[0]));
  reactor r;
  ASSERT_EQ(r.wait(c, p[0], POLLIN), 0);
  std::this_thread::sleep_for(10ms);
  EXPECT_FALSE(c.ended());
  EXPECT_EQ(r.waiting(), 1u);
  p.put(1);
  ASSERT_TRUE(c.ends());
  EXPECT_EQ(c.cause, wake::ready);
  EXPECT_TRUE(comes_true([&] { return r.waiting() == 0; }));
}

TEST(reactor, counts_readiness_that_is_there_already) {
  pipe_ends p;
  reactor r;
  for (int i = 0; i < 100; ++i) {
    p.put(1);
    call c(reads(p[0]));
    ASSERT_EQ(r.wait(c, p[0], POLLIN), 0);
    ASSERT_TRUE(c.ends()) << i;
  }
}

TEST(reactor, refuses_what_epoll_does_not_take) {
  reactor r;
  call c;
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(r.wait(c, file, POLLIN), -EPERM);
  ::close(file);
  EXPECT_EQ(r.wait(c, file, POLLIN), -EBADF);
  EXPECT_EQ(r.wait(c, -2, POLLIN), -EBADF);
  EXPECT_EQ(r.waiting(), 0u);
  r.close(file);
  r.close(-1);
}

TEST(reactor, resumes_readers_of_a_descriptor_in_the_order_they_came) {
  constexpr int n = 1000;
  pipe_ends p;
  std::vector<int> order;
  std::mutex lock;
  std::deque<call> calls;
  reactor r;
  for (int i = 0; i < n; ++i) {
    call& c = calls.emplace_back(reads(p[0]));
    c.name = i;
    c.order = &order;
    c.order_lock = &lock;
    ASSERT_EQ(r.wait(c, p[0], POLLIN, clock::now() + 1h), 0);
  }
  std::mt19937 random(1);
  for (int left = n; left > 0;) {
    int put = std::min(left, static_cast<int>(random() % 7 + 1));
    p.put(1, std::string(static_cast<std::size_t>(put), 'x').c_str());
    left -= put;
  }
  ASSERT_TRUE(comes_true([&] { return r.waiting() == 0; }));
  for (int i = 0; i < n; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(reactor, keeps_readers_and_writers_of_a_descriptor_apart) {
  socket_ends s;
  fill(s[0]);
  call in(reads(s[0])), out([&] { return ::write(s[0], "x", 1) == 1; });
  reactor r;
  ASSERT_EQ(r.wait(out, s[0], POLLOUT), 0);
  ASSERT_EQ(r.wait(in, s[0], POLLIN), 0);
  s.put(1);
  ASSERT_TRUE(in.ends());
  EXPECT_FALSE(out.ended());
  std::vector<char> bytes(1 << 20);
  while (::read(s[1], bytes.data(), bytes.size()) > 0) continue;
  ASSERT_TRUE(out.ends());
}

TEST(reactor, resumes_all_that_watch_and_before_those_that_consume) {
  pipe_ends p;
  std::vector<int> order;
  std::mutex lock;
  call first(reads(p[0])), second(reads(p[0])), watcher, other;
  int name = 0;
  for (call* c : {&first, &second, &watcher, &other}) {
    c->name = name++;
    c->order = &order;
    c->order_lock = &lock;
  }
  reactor r;
  ASSERT_EQ(r.wait(first, p[0], POLLIN), 0);
  ASSERT_EQ(r.wait(second, p[0], POLLIN), 0);
  ASSERT_EQ(r.wait(watcher, p[0], POLLIN | POLLPRI), 0);
  ASSERT_EQ(r.wait(other, p[0], POLLPRI), 0);
  p.put(1);
  ASSERT_TRUE(first.ends());
  EXPECT_EQ(order, (std::vector<int>{2, 0}));
  EXPECT_TRUE(comes_true([&] { return r.waiting() == 2; }));
  p.close(1);  // a hang-up is for all
  ASSERT_TRUE(second.ends());
  EXPECT_EQ(order, (std::vector<int>{2, 0, 3, 1}));
}

TEST(reactor, tries_again_without_spinning_what_blocks_though_it_is_ready) {
  // The counter has room for one more, so POLLOUT is there, but not for two.
  int counter = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::uint64_t value = ~std::uint64_t{0} - 2;
  ASSERT_EQ(::write(counter, &value, sizeof value), 8);
  call c([&] {
    std::uint64_t two = 2;
    return ::write(counter, &two, sizeof two) == 8;
  });
  reactor r;
  ASSERT_EQ(r.wait(c, counter, POLLOUT), 0);
  std::this_thread::sleep_for(500ms);
  EXPECT_FALSE(c.ended());
  EXPECT_LE(c.tries, 30);
  EXPECT_EQ(::read(counter, &value, sizeof value), 8);
  ASSERT_TRUE(c.ends());
  r.close(counter);
  ::close(counter);
}

TEST(reactor, resumes_a_sender_whose_peer_alone_was_full) {
  // No event tells that a datagram peer, to whom this end is not connected, has room again.
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::string name = "grosr-reactor-test-" + std::to_string(getpid());
  std::memcpy(to.sun_path + 1, name.data(), name.size());
  auto size = static_cast<socklen_t>(sizeof to.sun_family + 1 + name.size());
  int peer = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  int own = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  auto* address = reinterpret_cast<const sockaddr*>(&to);
  ASSERT_EQ(bind(peer, address, size), 0);
  auto send = [&] { return sendto(own, "x", 1, 0, address, size) == 1; };
  while (send()) continue;
  ASSERT_EQ(errno, EAGAIN);
  call c(send);
  reactor r;
  ASSERT_EQ(r.wait(c, own, POLLOUT), 0);
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(c.ended());
  EXPECT_TRUE(reads(peer)());
  EXPECT_TRUE(c.ends());
  r.close(own);
  ::close(peer);
  ::close(own);
}

TEST(reactor, ends_waits_at_their_deadlines_and_not_before) {
  constexpr int n = 200;
  pipe_ends p;
  std::deque<call> calls;
  std::vector<clock::time_point> until(n), ended(n);
  reactor r;
  std::mt19937 random(2);
  auto begin = clock::now();
  for (std::size_t i = 0; i < n; ++i) {
    until[i] = begin + std::chrono::microseconds(random() % 200'000);
    call& c = calls.emplace_back();
    c.last_act = [&ended, i](wake) { ended[i] = clock::now(); };
    ASSERT_EQ(r.wait(c, i % 2 == 0 ? -1 : p[0], POLLIN, until[i]), 0);
  }
  ASSERT_TRUE(comes_true([&] { return r.waiting() == 0; }));
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(calls[i].cause, wake::timed_out);
    EXPECT_GE(ended[i], until[i]);
    EXPECT_EQ(calls[i].times, 1);
  }
}

TEST(reactor, lets_the_next_try_when_the_first_has_timed_out) {
  pipe_ends p;
  call picky([] { return false; }), next(reads(p[0]));
  reactor r;
  ASSERT_EQ(r.wait(picky, p[0], POLLIN, clock::now() + 50ms), 0);
  ASSERT_EQ(r.wait(next, p[0], POLLIN), 0);
  p.put(1);
  ASSERT_TRUE(next.ends());
  EXPECT_EQ(picky.cause, wake::timed_out);
}

TEST(reactor, lets_a_call_wait_again_from_its_own_resume) {
  const auto rounds = static_cast<int>(scaled(20'000, 1000));
  pipe_ends p;
  reactor r;
  std::atomic<int> count{0};
  call c(reads(p[0]));
  c.last_act = [&](wake) {
    if (++count == rounds) return;
    EXPECT_EQ(r.wait(c, count % 3 == 0 ? -1 : p[0], POLLIN, clock::now()), 0);
  };
  ASSERT_EQ(r.wait(c, p[0], POLLIN, clock::now()), 0);
  std::thread([&] {
    while (count < rounds) fill(p[1]);
  }).join();
  ASSERT_TRUE(comes_true([&] { return r.waiting() == 0; }));
  EXPECT_EQ(c.times, rounds);
}

TEST(reactor, close_resumes_all_waiters_and_returns_then) {
  socket_ends s;
  fill(s[0]);
  std::deque<call> calls(300);
  reactor r;
  short events[] = {POLLIN, POLLOUT, POLLPRI};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].attempt = [] { return false; };
    ASSERT_EQ(r.wait(calls[i], s[0], events[i % 3], clock::now() + 1h), 0);
  }
  s.put(1);
  r.close(s[0]);
  for (call& c : calls) {
    ASSERT_EQ(c.times, 1);
    ASSERT_EQ(c.cause, wake::closed);
  }
  EXPECT_EQ(r.waiting(), 0u);
}

TEST(reactor, close_waits_for_the_one_being_resumed) {
  pipe_ends p;
  reactor r;
  std::atomic<bool> inside{false};
  call c([&] {
    inside = true;
    std::this_thread::sleep_for(50ms);
    return false;
  });
  ASSERT_EQ(r.wait(c, p[0], POLLIN), 0);
  p.put(1);
  ASSERT_TRUE(comes_true([&] { return inside.load(); }));
  r.close(p[0]);
  EXPECT_EQ(c.times, 1);
  EXPECT_EQ(c.cause, wake::closed);
}

TEST(reactor, close_works_from_a_resume) {
  pipe_ends p, q;
  reactor r;
  call other, behind, c;
  c.attempt = [&] {
    r.close(q[0]);
    EXPECT_EQ(other.cause, wake::closed);
    r.close(p[0]);
    EXPECT_TRUE(behind.ended());
    EXPECT_FALSE(c.ended());
    return false;
  };
  other.last_act = [&](wake) { r.close(q[0]); };
  ASSERT_EQ(r.wait(other, q[0], POLLIN), 0);
  ASSERT_EQ(r.wait(c, p[0], POLLIN), 0);
  ASSERT_EQ(r.wait(behind, p[0], POLLIN), 0);
  p.put(1);
  ASSERT_TRUE(c.ends());
  EXPECT_EQ(c.cause, wake::closed);
  EXPECT_EQ(c.tries, 2);
  ASSERT_TRUE(comes_true([&] { return r.waiting() == 0; }));
}

TEST(reactor, a_number_serves_again_after_close) {
  reactor r;
  for (int i = 0; i < 200; ++i) {
    pipe_ends p;
    call first(reads(p[0])), second(reads(p[0]));
    ASSERT_EQ(r.wait(first, p[0], POLLIN), 0);
    if (i % 2 == 0) {
      p.put(1);
      ASSERT_TRUE(first.ends());
    }
    ASSERT_EQ(r.wait(second, p[0], POLLIN), 0);
    r.close(p[0]);
    EXPECT_EQ(first.cause, i % 2 == 0 ? wake::ready : wake::closed);
    EXPECT_EQ(second.cause, wake::closed);
  }
}

// Numbers that change under the reactor: closed and used again without a word to it.
TEST(reactor, a_number_that_became_another_file_is_waited_for_as_that) {
  reactor r;
  pipe_ends new_pipe;
  for (bool old_lives_on : {false, true}) {
    pipe_ends p;
    const int number = p[0], again = old_lives_on ? dup(number) : -1;
    call before, c(reads(number));
    ASSERT_EQ(r.wait(before, number, POLLIN), 0);
    ASSERT_EQ(dup2(new_pipe[0], number), number);
    ASSERT_EQ(r.wait(c, number, POLLIN), 0);
    ASSERT_TRUE(before.ends());
    EXPECT_EQ(before.cause, wake::closed);
    if (old_lives_on) p.put(1);  // its events are nobody's
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(c.tries, 0);
    new_pipe.put(1);
    ASSERT_TRUE(c.ends());
    EXPECT_EQ(c.cause, wake::ready);
    r.close(number);
    if (again < 0) continue;
    // The first file comes back to its number: the epoll still has it.
    ASSERT_EQ(dup2(again, number), number);
    call back(reads(number));
    ASSERT_EQ(r.wait(back, number, POLLIN), 0);
    EXPECT_TRUE(back.ends());
    EXPECT_EQ(back.cause, wake::ready);
    r.close(number);
    ::close(again);
  }
}

TEST(reactor, a_number_that_was_closed_or_became_a_regular_file_is_refused) {
  reactor r;
  for (bool reused : {false, true}) {
    pipe_ends p;
    const int number = p[0];
    call before, c;
    ASSERT_EQ(r.wait(before, number, POLLIN), 0);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (reused)
      ASSERT_EQ(dup2(file, number), number);
    else
      p.close(0);
    EXPECT_EQ(r.wait(c, number, POLLIN), reused ? -EPERM : -EBADF);
    ASSERT_TRUE(before.ends());
    EXPECT_EQ(before.cause, wake::closed);
    ::close(file);
  }
}

TEST(reactor, one_file_may_have_two_numbers) {
  pipe_ends p;
  const int again = dup(p[0]);
  call a(reads(p[0])), b(reads(again));
  reactor r;
  ASSERT_EQ(r.wait(a, p[0], POLLIN), 0);
  ASSERT_EQ(r.wait(b, again, POLLIN), 0);
  p.put(1);
  ASSERT_TRUE(comes_true([&] { return a.times + b.times == 1; }));
  call& left = a.ended() ? b : a;
  r.close(a.ended() ? p[0] : again);
  EXPECT_FALSE(left.ended());
  p.put(1);
  ASSERT_TRUE(left.ends());
  EXPECT_EQ(left.cause, wake::ready);
  r.close(again);
  ::close(again);
}

TEST(reactor, stop_resumes_all_and_refuses_more) {
  pipe_ends p;
  std::deque<call> calls(300);
  reactor r;
  for (std::size_t i = 0; i < calls.size(); ++i)
    ASSERT_EQ(r.wait(calls[i], i % 2 == 0 ? p[0] : -1, POLLIN), 0);
  r.stop();
  for (call& c : calls) {
    ASSERT_EQ(c.times, 1);
    ASSERT_EQ(c.cause, wake::stopped);
  }
  EXPECT_EQ(r.wait(calls[0], p[0], POLLIN), -ESHUTDOWN);
  r.close(p[0]);
  r.stop();
  reactor unused;
  unused.stop();
  EXPECT_EQ(unused.wait(calls[0], p[0], POLLIN), -ESHUTDOWN);
}

TEST(reactor, stop_works_from_a_resume_and_while_one_is_resumed) {
  for (bool inside : {true, false}) {
    pipe_ends p;
    reactor r;
    std::deque<call> others(100);
    std::atomic<bool> begun{false};
    call c([&] {
      begun = true;
      if (inside)
        r.stop();
      else
        std::this_thread::sleep_for(20ms);
      return false;
    });
    ASSERT_EQ(r.wait(c, p[0], POLLIN), 0);
    for (call& o : others) {
      o.last_act = [&](wake) { r.stop(); };
      ASSERT_EQ(r.wait(o, p[0], POLLIN), 0);
    }
    p.put(1);
    ASSERT_TRUE(comes_true([&] { return begun.load(); }));
    r.stop();
    EXPECT_EQ(c.cause, wake::stopped);
    for (call& o : others) EXPECT_EQ(o.times, 1);
  }
}

TEST(reactor, holds_100000_waiters) {
  constexpr std::size_t n = 100'000;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t files = std::min<std::size_t>(500, limit.rlim_cur / 4);
  std::deque<pipe_ends> pipes(files);
  std::vector<call> calls(n);
  reactor r;
  for (std::size_t i = 0; i < n; ++i) {
    const int from = pipes[i % files][0];
    calls[i].attempt = reads(from);
    std::optional<clock::time_point> until;
    if (i % 3 == 0) until = clock::now() + 1h + std::chrono::microseconds(i * 7919 % n);
    ASSERT_EQ(r.wait(calls[i], i % 10 == 9 ? -1 : from, POLLIN, until), 0);
  }
  EXPECT_EQ(r.waiting(), n);
  for (auto& p : pipes) p.put(1);
  for (std::size_t i = 0; i < files; ++i) ASSERT_TRUE(i % 10 == 9 || calls[i].ends()) << i;
  for (std::size_t i = 0; i < files / 2; ++i) r.close(pipes[i][0]);
  r.stop();
  for (call& c : calls) ASSERT_EQ(c.times, 1);
}

// Readers come from four threads while others read at once and a writer writes just enough bytes.
TEST(reactor, forgets_no_reader_while_bytes_and_readers_come_and_go) {
  const auto rounds = static_cast<std::size_t>(scaled(10'000, 500));
  constexpr std::size_t threads = 4;
  pipe_ends p;
  std::deque<std::deque<call>> calls(threads);
  reactor r;
  std::vector<std::thread> all;
  for (std::size_t t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      for (std::size_t i = 0; i < rounds; ++i) {
        call& c = calls[t].emplace_back(reads(p[0]));
        if (i % 2 == 0 && c.attempt())
          c.times = 1;
        else
          EXPECT_EQ(r.wait(c, p[0], POLLIN), 0);
      }
    });
  for (std::size_t left = threads * rounds; left > 0;)
    if (::write(p[1], "x", 1) == 1) --left;
  for (auto& t : all) t.join();
  EXPECT_TRUE(comes_true([&] { return r.waiting() == 0; })) << r.waiting();
  for (auto& of_thread : calls)
    for (call& c : of_thread) ASSERT_EQ(c.times, 1);
}

// Bytes come, deadlines pass, descriptors are closed and made anew, all at once from four threads;
// each call ends once, and what was written was read or is still there.
TEST(reactor, survives_a_storm) {
  constexpr int threads = 4, pipes = 8;
  const auto rounds = static_cast<int>(scaled(20'000, 500));
  reactor r;
  std::atomic<std::size_t> ended{0}, waited{0}, refused{0};
  struct place {
    std::mutex lock;  // of the numbers, as the server's table of descriptors
    std::optional<pipe_ends> ends{std::in_place};
  } places[pipes];
  struct storm_call : sys::waiter {
    int from = -1;
    std::atomic<std::size_t>* ended = nullptr;
    std::atomic<bool> busy{false};
  };
  auto act = [](sys::waiter& w, wake cause) {
    auto& c = static_cast<storm_call&>(w);
    char byte;
    if (cause == wake::ready && ::read(c.from, &byte, 1) < 0 && errno == EAGAIN) return false;
    ++*c.ended;
    c.busy = false;
    return true;
  };
  std::vector<std::deque<storm_call>> calls(threads);
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      std::mt19937 random(t);
      calls[t].resize(64);
      for (int i = 0; i < rounds; ++i) {
        place& p = places[random() % pipes];
        auto what = random() % 64;
        if (what == 0) {
          std::lock_guard guard(p.lock);
          r.close((*p.ends)[0]);
          p.ends.emplace();
        } else if (what < 32) {
          std::lock_guard guard(p.lock);
          if (::write((*p.ends)[1], "x", 1) < 0) continue;
        } else {
          storm_call& c = calls[t][random() % calls[t].size()];
          if (c.busy.exchange(true)) continue;
          std::lock_guard guard(p.lock);
          c.resume = act;
          c.from = (*p.ends)[0];
          c.ended = &ended;
          std::optional<clock::time_point> until;
          if (what < 48) until = clock::now() + std::chrono::microseconds(random() % 500);
          ++waited;
          if (r.wait(c, c.from, POLLIN, until) != 0) ++refused;
        }
      }
    });
  for (auto& t : all) t.join();
  EXPECT_EQ(refused, 0u);
  for (auto& p : places) r.close((*p.ends)[0]);
  EXPECT_EQ(ended, waited);
  EXPECT_EQ(r.waiting(), 0u);
}

// Times come without the reactor's lock, while its thread wakes for earlier ones, and is stopped.
TEST(reactor, forgets_no_time_that_many_threads_wait_for) {
  constexpr std::size_t threads = 4;
  const auto rounds = static_cast<std::size_t>(scaled(20, 2));
  const auto each = static_cast<std::size_t>(scaled(2'000, 200));
  for (std::size_t round = 0; round < rounds; ++round) {
    std::deque<std::deque<call>> calls(threads);
    std::atomic<std::size_t> early{0};
    reactor r;
    std::vector<std::thread> all;
    for (std::size_t t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(round * threads + t));
        for (std::size_t i = 0; i < each; ++i) {
          call& c = calls[t].emplace_back();
          const auto until = clock::now() + std::chrono::microseconds(random() % 2'000);
          c.last_act = [&early, until](wake why) {
            early += why == wake::timed_out && clock::now() < until ? 1 : 0;
          };
          if (const long refused = r.wait(c, -1, 0, until); refused != 0) {
            EXPECT_EQ(refused, -ESHUTDOWN);
            calls[t].pop_back();
            return;
          }
        }
      });
    const bool stopped = round % 2 == 1;
    if (stopped) {
      std::this_thread::sleep_for(1ms);
      r.stop();
    }
    for (auto& t : all) t.join();
    ASSERT_TRUE(comes_true([&] { return r.waiting() == 0; })) << r.waiting() << " wait for ever";
    for (auto& one : calls)
      for (call& c : one) ASSERT_EQ(c.times, 1) << (stopped ? "stopped" : "not stopped");
    EXPECT_EQ(early, 0u);
  }
}

}  // namespace
}  // namespace grosr::testing
