// Tasks of a runtime make calls, of every width; and those that wait for a peer give up their
// worker.
#include <fcntl.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "grosr/run/runtime.hpp"
#include "support/scale.hpp"
#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(calls_in_tasks);

using namespace std::chrono_literals;

runtime_options small(device d) {
  runtime_options o;
  if (d.is_cuda()) o.sms = 2;
  o.blocks_per_sm = 1;
  return o;
}

/// Writes its number where it belongs, and reads it back.
template <grosr::width W>
struct keep_number {
  static constexpr grosr::width width = W;
  server_ref sys;
  int file;
  std::uint32_t number;
  std::uint32_t* numbers;  // read back, by number

  template <class Caller>
  GROSR_DEVICE int keep(const Caller& c) const {
    const auto at = static_cast<std::int64_t>(number) * 4;
    if (pwrite(c, file, &number, 4, at) != 4) return -EIO;
    if (pread(c, file, numbers + number, 4, at) != 4) return -EIO;
    return 0;
  }
  GROSR_DEVICE int operator()(auto&) const {
    if constexpr (W == grosr::width::lane) return keep(sys);
    if constexpr (W == grosr::width::warp) return keep(sys.warp());
    if constexpr (W == grosr::width::block) return keep(sys.block());
  }
};

using of_lane = keep_number<grosr::width::lane>;
using of_warp = keep_number<grosr::width::warp>;
using of_block = keep_number<grosr::width::block>;

TEST_P(calls_in_tasks, of_every_width_are_made_once) {
  own_folder f;
  f.write("numbers", "");
  const int file = ::open(f.file("numbers").c_str(), O_RDWR | O_CLOEXEC);
  const auto each = static_cast<std::uint32_t>(testing::scaled(300, 40));
  auto numbers = make<std::uint32_t>(3 * each);
  {
    server s(where(), options_for(f));
    s.grant(file);
    runtime<of_lane, of_warp, of_block> rt(where(), small(where()));
    for (std::uint32_t i = 0; i < each; ++i) {
      rt.submit(of_lane{s.ref(), file, i, numbers.data()});
      rt.submit(of_warp{s.ref(), file, each + i, numbers.data()});
      rt.submit(of_block{s.ref(), file, 2 * each + i, numbers.data()});
    }
    rt.wait_all();
    EXPECT_TRUE(rt.errors().empty());
  }
  const auto got = contents(numbers);
  for (std::uint32_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i);
  ::close(file);
}

// A task that waits starts its call, leaves the token in memory and spawns what is left of it.
struct message {
  token<granularity::lane, 1, bulk::bytes> call;
  std::uint64_t text;
  std::int64_t result;
};

struct receive_rest {
  server_ref sys;
  message* to;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto c = sys.start();
    if (!test(c, to->call)) return context.spawn(*this, priority::low);
    to->result = wait(c, to->call);
  }
};

struct receive {
  server_ref sys;
  int peer;
  message* to;
  GROSR_DEVICE void operator()(auto& context) const {
    to->call = recv(sys.start(), peer, &to->text, 8, 0);
    context.spawn(receive_rest{sys, to}, priority::low);
  }
};

struct send_all {
  server_ref sys;
  const int* peers;
  std::uint32_t count;
  std::uint32_t* sent;
  GROSR_DEVICE void operator()(auto&) const {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t text = 1000 + i;
      if (send(sys, peers[i], &text, 8, 0) == 8) ++*sent;
    }
  }
};

TEST_P(calls_in_tasks, that_wait_leave_the_worker_to_others) {
  // More of them than lanes: were one to keep its worker, the one that sends would never run.
  const std::uint32_t count = 2 * 128 + 100;
  own_folder f;
  options o = options_for(f);
  o.policy.network = true;
  server s(where(), o);
  std::vector<int> receiving, sending;
  for (std::uint32_t i = 0; i < count; ++i) {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    s.grant(ends[0]);
    s.grant(ends[1]);
    receiving.push_back(ends[0]);
    sending.push_back(ends[1]);
  }
  auto messages = make<message>(count);
  auto peers = make<int>(count);
  peers.copy_from(sending);
  auto sent = make<std::uint32_t>(1);
  {
    runtime<receive, receive_rest, send_all> rt(where(), small(where()));
    for (std::uint32_t i = 0; i < count; ++i)
      rt.submit(receive{s.ref(), receiving[i], messages.data() + i});
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (s.statistics().waited < count && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(1ms);
    EXPECT_EQ(s.statistics().waited, count) << "all of them wait at once";
    rt.submit(send_all{s.ref(), peers.data(), count, sent.data()});
    rt.wait_all();
  }
  EXPECT_EQ(contents(sent)[0], count);
  const auto got = contents(messages);
  for (std::uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(got[i].result, 8) << i;
    ASSERT_EQ(got[i].text, 1000 + i) << i;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    ::close(receiving[i]);
    ::close(sending[i]);
  }
}

}  // namespace
}  // namespace grosr::sys
