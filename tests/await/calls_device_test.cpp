// Tasks that await calls: each result and its bytes come once, no worker waits for them, and what
// cannot be made says why.
#include "await/small_runtime.hpp"
#include "grosr/await/awaited.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <vector>

#include "grosr/run/runtime.hpp"
#include "grosr/sys/server.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/scale.hpp"

namespace grosr {
namespace {

GROSR_DEVICE_SUITE(awaited_calls);

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

using testing::small;

struct outcome {
  long results[2];
  std::int64_t text;
  std::uint32_t runs;
};

/// Two calls that take no time, and one that does.
struct looked {
  using result = long;
  outcome* to;
  long first, second;
  GROSR_DEVICE int operator()(auto& context) const {
    to->results[0] = first;
    to->results[1] = second;
    to->runs += 1;
    context.give(first + second);
    return context.status();
  }
};
struct look {
  using result = long;
  sys::server_ref sys;
  outcome* to;
  GROSR_DEVICE void operator()(auto& context) const {
    auto& next = context.join(looked{to, -1, -1});
    sys::syscall(context.await(sys, &next.first), SYS_getpid);
    sys::nothing(context.await(sys, &next.second));
  }
};

TEST_P(awaited_calls, bring_their_results_to_the_continuation) {
  const auto each = static_cast<std::uint32_t>(testing::scaled(2000, 100));
  simt::buffer<outcome> outcomes(where(), simt::space::device, each);
  outcomes.copy_from(std::vector<outcome>(each));
  {
    sys::server server(where());
    runtime<look, looked, awaited> rt(where(), small(where()));
    for (std::uint32_t i = 0; i < each; ++i) rt.submit(look{server.ref(), outcomes.data() + i});
    rt.wait_all();
    rt.park();  // with which workers tell what they have counted
    EXPECT_EQ(rt.stats().awaited, 2 * each);
    EXPECT_EQ(rt.stats().failed, 0u);
    EXPECT_EQ(rt.fork(look{server.ref(), outcomes.data()}).get(), ::getpid());
  }
  std::vector<outcome> got(each);
  outcomes.copy_to(got);
  for (std::uint32_t i = 0; i < each; ++i) {
    ASSERT_EQ(got[i].results[0], ::getpid()) << i;
    ASSERT_EQ(got[i].results[1], 0) << i;
    ASSERT_EQ(got[i].runs, i == 0 ? 2u : 1u) << i;
  }
}

// ---- calls that wait ----

/// Reads what comes from a socket into the continuation itself.
struct received {
  using result = long;
  long* all;
  long bytes;
  std::uint64_t text;
  GROSR_DEVICE int operator()(auto& context) const {
    if (bytes != 8) return bytes < 0 ? static_cast<int>(bytes) : -EIO;
    simt::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(all))
        .fetch_add(text, simt::relaxed);
    context.give(bytes);
    return 0;
  }
};
template <grosr::width W>
struct receive {
  using result = long;
  static constexpr grosr::width width = W;
  sys::server_ref sys;
  int peer;
  long* all;
  GROSR_DEVICE void operator()(auto& context) const {
    if constexpr (W == grosr::width::warp) {
      received* next = nullptr;
      if (context.rank() == 0) next = &context.join(received{all, -1, 0});
      next = reinterpret_cast<received*>(
          simt::shuffle(simt::full_mask, reinterpret_cast<std::uint64_t>(next), 0));
      sys::recv(context.await(sys.warp(), &next->bytes), peer, &next->text, 8, 0);
    } else if (context.rank() == 0) {
      auto& next = context.join(received{all, -1, 0});
      sys::recv(context.await(sys, &next.bytes), peer, &next.text, 8, 0);
    }
  }
};
using receive_lane = receive<grosr::width::lane>;
using receive_warp = receive<grosr::width::warp>;
using receive_block = receive<grosr::width::block>;

struct other {
  std::uint32_t* count;
  GROSR_DEVICE void operator()(auto&) const {
    simt::atomic_ref<std::uint32_t>(*count).fetch_add(1, simt::relaxed);
  }
};

template <class Receive>
void receive_many(const device& d) {
  const auto count = static_cast<unsigned>(testing::scaled(200, 20));
  simt::buffer<long> all(d, simt::space::device, 1);
  simt::buffer<std::uint32_t> others(d, simt::space::device, 1);
  all.copy_from(std::vector<long>(1));
  others.copy_from(std::vector<std::uint32_t>(1));
  sys::options so;
  so.policy.network = true;
  so.descriptors = 4096;
  sys::server server(d, so);
  std::vector<std::array<int, 2>> peers(count);
  for (auto& p : peers) {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p.data()), 0);
    server.grant(p[0]);
  }
  {
    runtime<Receive, received, other, awaited> rt(d, small(d));
    std::vector<future<long>> got;
    for (auto& p : peers) got.push_back(rt.fork(Receive{server.ref(), p[0], all.data()}));
    // More of them wait than there are workers, and others go on.
    rt.submit(std::vector<other>(1000, other{others.data()})).wait();
    for (auto& f : got) ASSERT_FALSE(f.ready());
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t text = i * i + 1;
      sum += text;
      ASSERT_EQ(::send(peers[i][1], &text, 8, 0), 8);
    }
    for (auto& f : got) ASSERT_EQ(f.get(), 8);
    rt.wait_all();
    std::vector<long> sums(1);
    all.copy_to(sums);
    EXPECT_EQ(static_cast<std::uint64_t>(sums[0]), sum);
    rt.park();  // with which workers tell what they have counted
    EXPECT_EQ(rt.stats().awaited, count);
  }
  for (auto& p : peers)
    for (int fd : p) ::close(fd);
}

TEST_P(awaited_calls, of_lanes_hold_no_worker) { receive_many<receive_lane>(where()); }
TEST_P(awaited_calls, of_warps_hold_no_worker) { receive_many<receive_warp>(where()); }
TEST_P(awaited_calls, of_blocks_hold_no_worker) { receive_many<receive_block>(where()); }

}  // namespace
}  // namespace grosr
