// Every packet that host threads write reaches one warp, whole, in the order in which they were
// written; a full ring says so to the host and loses nothing.
#include "queue/consume_packets.hpp"

#include <thread>

#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::queue {
namespace {

GROSR_DEVICE_SUITE(submission_ring_packets);

void expect_all_once(const std::vector<taken_packet>& log, std::uint32_t producers) {
  std::vector<std::uint32_t> seen(log.size()), next_of_producer(producers), next_of_warp(1024);
  std::vector<const taken_packet*> by_number(log.size());
  for (const taken_packet& l : log) {
    ASSERT_LT(l.number, log.size());
    ASSERT_EQ(++seen[l.number], 1u) << "packet " << l.number << " was taken twice";
    ASSERT_EQ(l.whole, 1u) << "packet " << l.number << " is torn";
    ASSERT_GE(l.number + 1, next_of_warp[l.warp]) << "a warp took packets out of order";
    next_of_warp[l.warp] = l.number + 1;
    by_number[l.number] = &l;
  }
  for (const taken_packet* l : by_number) {
    ASSERT_LT(l->who, producers);
    ASSERT_EQ(l->i, next_of_producer[l->who]++) << "packets of producer " << l->who;
  }
}

void expect_delivery(device d, simt::shape grid, std::uint32_t capacity, unsigned threads,
                     std::uint32_t each, bool slowly) {
  submission_ring ring(d, capacity);
  const std::uint32_t total = threads * each;
  simt::buffer<std::uint32_t> count(d, simt::space::device, 1);
  simt::buffer<taken_packet> log(d, simt::space::device, total);
  simt::stream s(d);
  simt::launch(s, grid, consume_packets{ring.ref(), total, count.data(), log.data()});
  std::vector<std::thread> producers;
  for (std::uint32_t who = 0; who < threads; ++who)
    producers.emplace_back([&, who] {
      for (std::uint32_t i = 0; i < each;) {
        {
          std::lock_guard lock(ring.lock());
          if (ring.has_room()) ring.write(content_of(who, i++));
        }
        if (slowly && i % 7 == who) std::this_thread::sleep_for(std::chrono::microseconds(100));
        std::this_thread::yield();
      }
    });
  for (auto& p : producers) p.join();
  s.wait();
  std::vector<taken_packet> all(total);
  log.copy_to(all);
  expect_all_once(all, threads);
}

TEST_P(submission_ring_packets, arrive_once_over_many_laps) {
  const auto each = static_cast<std::uint32_t>(testing::scaled(1000, 50));
  expect_delivery(where(), {4, 128}, 8, 3, each, false);
  expect_delivery(where(), {4, 128}, 64, 3, each, false);
}

TEST_P(submission_ring_packets, arrive_once_at_one_warp) {
  expect_delivery(where(), {1, 32}, 8, 2, static_cast<std::uint32_t>(testing::scaled(500, 50)),
                  false);
}

TEST_P(submission_ring_packets, arrive_once_when_they_come_seldom) {
  expect_delivery(where(), {2, 64}, 16, 2, static_cast<std::uint32_t>(testing::scaled(200, 50)),
                  true);
}

TEST_P(submission_ring_packets, wait_at_the_host_when_the_ring_is_full) {
  constexpr std::uint32_t capacity = 16;
  submission_ring ring(where(), capacity);
  auto count = make<std::uint32_t>(1);
  auto log = make<taken_packet>(2 * capacity);
  std::lock_guard lock(ring.lock());
  for (std::uint32_t i = 0; i < capacity; ++i) {
    ASSERT_TRUE(ring.has_room());
    EXPECT_EQ(ring.write(content_of(0, i)), i);
  }
  EXPECT_FALSE(ring.has_room());
  run(1, 64, consume_packets{ring.ref(), capacity, count.data(), log.data()});
  // All were taken, and the host knows of at least three quarters of them.
  for (std::uint32_t i = capacity; i < capacity + capacity * 3 / 4; ++i) {
    ASSERT_TRUE(ring.has_room());
    ring.write(content_of(0, i));
  }
  run(1, 64, consume_packets{ring.ref(), capacity + capacity * 3 / 4, count.data(), log.data()});
  auto all = contents(log);
  all.resize(capacity + capacity * 3 / 4);
  expect_all_once(all, 1);
}

GROSR_DEVICE bool claims_one(const submission_ring_ref& ring, std::uint32_t& number) {
  return ring.claim(number, [](std::uint32_t) { return 1u; }) != 0;
}

// One warp, step by step; `out` gets what the step found.
struct step {
  submission_ring_ref ring;
  enum : std::uint32_t { poll, poll_one, claim, read } what;
  std::uint32_t number;
  std::uint32_t* out;

  GROSR_DEVICE void operator()() const {
    std::uint32_t found = 77;
    if (what == poll) {
      poll_lock lock{};
      share_lock(simt::lane_id() == 0 && ring.try_lock({}, lock), lock);
      const auto k = ring.poll(lock);
      found = ring.look_at(lock, k).packets;
      if (found != 0) ring.accept(lock, found, 0, true, true, false, k);
      if (simt::lane_id() == 0) ring.unlock(lock);
    } else if (what == poll_one) {
      poll_lock lock{};
      if (simt::lane_id() == 0) found = ring.try_lock({}, lock) && ring.accept_one(lock) ? 1 : 0;
    } else if (what == claim) {
      if (!claims_one(ring, found)) found = 77;
    } else {
      found = ring.read_staged(number).word(1);
    }
    if (simt::lane_id() == 0) *out = found;
  }
};

// A packet that was claimed but not yet read keeps the one of the next lap out.
TEST_P(submission_ring_packets, are_not_overwritten_before_they_are_read) {
  submission_ring ring(where(), 8);
  auto out = make<std::uint32_t>(1);
  const submission_ring_ref ref = ring.ref();
  auto does = [&](decltype(step::what) what, std::uint32_t number = 0) {
    run(1, 32, step{ref, what, number, out.data()});
    return contents(out)[0];
  };
  std::uint32_t written = 0;
  auto write_all = [&] {
    std::lock_guard lock(ring.lock());
    while (ring.has_room()) ring.write(content_of(0, written++));
  };
  write_all();
  EXPECT_EQ(does(step::poll), 4u);
  EXPECT_EQ(does(step::poll_one), 1u);
  EXPECT_EQ(does(step::poll), 3u);
  EXPECT_EQ(does(step::poll), 0u);
  EXPECT_EQ(does(step::poll_one), 0u);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(does(step::claim), i);
  EXPECT_EQ(does(step::claim), 77u);
  for (std::uint32_t i = 2; i < 8; ++i) EXPECT_EQ(does(step::read, i), i);
  write_all();
  EXPECT_EQ(written, 16u);
  EXPECT_EQ(does(step::poll), 0u);  // the place of packet 8 is that of packet 0
  EXPECT_EQ(does(step::poll_one), 0u);
  EXPECT_EQ(does(step::read, 0), 0u);
  EXPECT_EQ(does(step::poll), 1u);
  EXPECT_EQ(does(step::poll), 0u);
  EXPECT_EQ(does(step::read, 1), 1u);
  EXPECT_EQ(does(step::poll), 4u);
  EXPECT_EQ(does(step::claim), 8u);
  EXPECT_EQ(does(step::read, 8), 8u);
}

// One lane looks at a ring with one packet, in every state of that packet.
struct look {
  submission_ring_ref ring;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    std::uint32_t n = 0, number = 77;
    auto say = [&](bool b) {
      if (simt::lane_id() == 0) out[n] = b ? 1 : 0;
      ++n;
    };
    const bool leads = simt::lane_id() == 0;
    poll_lock lock{}, other{};
    say(ring.waiting());            // 0: nobody polled
    say(ring.unseen());             // 1
    say(claims_one(ring, number));  // 0
    const poll_age at_once_if_used{0, 2'000'000'000};
    say(leads && ring.try_lock(at_once_if_used, lock));  // 0: no packet ever came
    say(leads && ring.try_lock({}, lock));               // 1
    say(leads && ring.try_lock({}, other));              // 0: one holds it
    share_lock(true, lock);
    const auto k = ring.poll(lock);
    say(lock.seen == 0 && ring.look_at(lock, k).packets == 1);  // 1
    say(ring.first_is_free(k));                                 // 1
    ring.accept(lock, 1, 0, true, true, false, k);
    say(lock.seen == 1);                     // 1
    say(leads && ring.try_lock({}, other));  // 0: it was kept
    const auto next = ring.poll(lock);
    say(ring.look_at(lock, next).packets == 0);  // 1
    if (leads) ring.unlock(lock);
    say(ring.waiting());                                                // 1
    say(ring.unseen());                                                 // 0
    say(leads && ring.try_lock({2'000'000'000, 2'000'000'000}, lock));  // 0: polled just now
    say(leads && ring.try_lock(at_once_if_used, lock));                 // 1
    say(leads && ring.accept_one(lock));      // 0: no other packet is there
    say(ring.claimed() == 0);                 // 1
    say(claims_one(ring, number));            // 1
    say(number == 0 && ring.claimed() == 1);  // 1
    say(ring.waiting());                      // 0
    say(claims_one(ring, number));            // 0
  }
};

// The poller takes a packet for itself, and becomes the poller again.
struct take_and_return {
  submission_ring_ref ring;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const {
    const bool leads = simt::lane_id() == 0;
    poll_lock lock{};
    if (leads) ring.try_lock({}, lock);
    share_lock(true, lock);
    const auto k = ring.poll(lock);
    ring.accept(lock, 1, 1, false, true, true, k);
    std::uint32_t number = 77;
    const bool more = claims_one(ring, number);
    if (!leads) return;
    out[0] = ring.claimed();
    out[1] = ring.waiting() || more ? 1 : 0;
    out[2] = ring.try_relock(lock) ? 1 : 0;
    poll_lock other{};
    out[3] = ring.try_lock({}, other) ? 1 : 0;
    ring.unlock(lock);
    out[4] = ring.try_lock({}, other) ? other.seen : 77;
    const std::uint64_t later = simt::clock_ns() + 3000;  // locks tell polls apart by the clock
    while (simt::clock_ns() < later) simt::pause(0, "the clock");
    ring.unlock(other);
    out[5] = ring.try_relock(lock) ? 1 : 0;  // somebody polled since
  }
};

TEST_P(submission_ring_packets, are_taken_by_the_poller_who_then_polls_on) {
  submission_ring ring(where(), 8);
  {
    std::lock_guard lock(ring.lock());
    ring.write(content_of(0, 0));
  }
  auto out = make<std::uint32_t>(6);
  run(1, 32, take_and_return{ring.ref(), out.data()});
  EXPECT_EQ(contents(out), (std::vector<std::uint32_t>{1, 0, 1, 0, 1, 0}));
}

TEST_P(submission_ring_packets, are_unseen_then_waiting_then_claimed) {
  submission_ring ring(where(), 8);
  {
    std::lock_guard lock(ring.lock());
    ring.write(content_of(0, 0));
  }
  auto out = make<std::uint32_t>(21);
  run(1, 32, look{ring.ref(), out.data()});
  EXPECT_EQ(contents(out), (std::vector<std::uint32_t>{0, 1, 0, 0, 1, 0, 1, 1, 1, 0, 1,
                                                       1, 0, 0, 1, 0, 1, 1, 1, 0, 0}));
}

}  // namespace
}  // namespace grosr::queue
