// Each chunk that is pushed to the queue of arrivals is taken once, and none is lost, however often
// the queue goes round.
#include "grosr/net/detail/arrivals.hpp"

#include <bit>
#include <vector>

#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"
#include "support/seeds.hpp"

namespace grosr::net {
namespace {

GROSR_DEVICE_SUITE(arrivals_queue);

/// Links of `ring` chunks each, `each` chunks pass through each of them: even warps push, and odd
/// ones claim and take. What a chunk's place in its ring waits for is as in link.hpp: the chunk
/// before it there was taken. So there are as many places as chunks can be under way.
struct deliver {
  arrivals* queue;
  std::uint32_t links, ring, each;
  std::uint64_t* tails;  ///< of links: chunks that somebody pushes
  std::uint64_t* freed;  ///< by link and place in its ring: the chunk that was taken last, and 1
  std::uint32_t* taken;  ///< by link and chunk: how often
  std::uint32_t* count;  ///< of all that were taken; and of those that no link has

  GROSR_DEVICE void operator()() const {
    const std::uint32_t warp =
        simt::block_id() * (simt::block_size() / simt::warp_size) + simt::warp_id();
    if (warp % 2 == 0)
      push((warp / 2 + simt::lane_id()) % links);
    else
      take();
  }

 private:
  GROSR_DEVICE void push(std::uint32_t link) const {
    const simt::atomic_ref<std::uint64_t> tail(tails[link]);
    for (;;) {
      const std::uint64_t chunk = tail.fetch_add(1, simt::relaxed);
      if (chunk >= each) return;
      const simt::atomic_ref<std::uint64_t> before(freed[link * ring + chunk % ring]);
      const std::uint64_t room = chunk < ring ? 0 : chunk - ring + 1;
      simt::wait_until([&] { return before.load(simt::acquire) == room; }, simt::forever, nullptr,
                       "room in a link");
      arrivals_ref(*queue).push({chunk, link});
    }
  }

  /// Whole warp.
  GROSR_DEVICE void take() const {
    const unsigned lane = simt::lane_id();
    const arrivals_ref q(*queue);
    const simt::atomic_ref<std::uint32_t> all(count[0]), strange(count[1]);
    for (unsigned turn = 0;;) {
      claimed_chunks c;
      if (lane == 0) c = q.claim(q.near_count(), most_chunks);
      const std::uint32_t n = simt::shuffle(simt::full_mask, c.count, 0);
      const std::uint64_t first = simt::shuffle(simt::full_mask, c.first, 0);
      if (lane < n) {
        const arrival a = q.take(first + lane, false);
        if (a.from < links && a.chunk < each) {
          simt::atomic_ref<std::uint32_t>(taken[a.from * each + a.chunk])
              .fetch_add(1, simt::relaxed);
          simt::atomic_ref<std::uint64_t>(freed[a.from * ring + a.chunk % ring])
              .store(a.chunk + 1, simt::release);
        } else {
          strange.fetch_add(1, simt::relaxed);
        }
        all.fetch_add(1, simt::relaxed);
      }
      const bool over = lane == 0 && all.load(simt::relaxed) >= links * each;
      if (simt::any(simt::full_mask, over)) return;
      turn = n != 0 ? 0 : turn + 1;
      if (n == 0) simt::pause(turn, "chunks");
    }
  }
};

template <class T>
std::vector<T> contents(const simt::buffer<T>& b) {
  std::vector<T> all(b.size());
  b.copy_to(all);
  return all;
}

void expect_each_once(device d, simt::shape grid, std::uint32_t links, std::uint32_t ring,
                      std::uint32_t each) {
  const std::uint32_t places = links * ring;
  simt::buffer<std::uint64_t> near(d, simt::space::device, places),
      tails(d, simt::space::device, links), freed(d, simt::space::device, places);
  simt::buffer<std::uint32_t> taken(d, simt::space::device, links * each),
      count(d, simt::space::device, 2);
  simt::buffer<arrivals> queue(d, simt::space::device, 1);
  arrivals a{};
  a.near = near.data();
  a.near_shift = static_cast<std::uint32_t>(std::bit_width(places)) - 1;
  queue.copy_from(std::vector{a});
  simt::run(d, grid,
            deliver{queue.data(), links, ring, each, tails.data(), freed.data(), taken.data(),
                    count.data()});
  EXPECT_EQ(contents(taken), std::vector<std::uint32_t>(links * each, 1));
  EXPECT_EQ(contents(count), (std::vector<std::uint32_t>{links * each, 0}));
  EXPECT_EQ(contents(near), std::vector<std::uint64_t>(places, 0));
  EXPECT_EQ(contents(queue).front().available, 0u);
}

TEST_P(arrivals_queue, gives_each_chunk_once) {
  const auto each = static_cast<std::uint32_t>(testing::scaled(5000, 500));
  expect_each_once(where(), {4, 128}, 8, 4, each);
  expect_each_once(where(), {4, 128}, 2, 2, each);  // fewer places than lanes that wait for one
}

TEST(arrivals_schedules, give_each_chunk_once) {
  // A chunk that is lost is waited for: say so, and do not hang.
  struct limit {
    limit() { simt::host::set_poll_limit(20'000); }
    ~limit() { simt::host::set_poll_limit(std::nullopt); }
  } at_end;
  testing::for_seeds(1000, [] {
    const std::uint64_t seed = *simt::host::seed();
    const std::uint32_t links = 1u << seed % 3, ring = 1u << seed / 3 % 3;
    // Each queue goes round a dozen times.
    expect_each_once(device(), {2 + static_cast<unsigned>(seed) % 3 * 2, 32}, links, ring,
                     12 * ring);
  });
}

}  // namespace
}  // namespace grosr::net
