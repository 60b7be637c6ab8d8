// A warp that takes packets from a submission ring as a worker does: claims what was seen, and
// polls when nobody else does.
#pragma once

#include "grosr/queue/submission_ring_owner.hpp"
#include "support/scramble.hpp"

namespace grosr::queue {

/// The content that producer `who` sends as its i-th packet.
GROSR_DEVICE inline packet content_of(std::uint32_t who, std::uint32_t i) {
  packet l;
  l.word[0] = who;
  l.word[1] = i;
  for (std::uint32_t k = 2; k < packet_content; ++k)
    l.word[k] = testing::scramble(who * 7919 + i * 31 + k);
  return l;
}

/// One that was taken: its number in the ring, and what it holds.
struct taken_packet {
  std::uint32_t number, who, i, warp;
  std::uint32_t whole;
};

/// All warps take packets until `total` are taken; `log` has them in the order in which they were
/// counted, which for one warp is the order of its taking.
struct consume_packets {
  submission_ring_ref packets;
  std::uint32_t total;
  std::uint32_t* count;
  taken_packet* log;

  GROSR_DEVICE void operator()() const {
    const unsigned lane = simt::lane_id();
    for (std::uint32_t turn = 0, step = 0;; ++turn, ++step) {
      std::uint32_t over = 0;
      if (lane == 0) over = simt::atomic_ref(*count).load(simt::relaxed) == total;
      if (simt::shuffle(simt::full_mask, over, 0)) return;
      if (claim(1 + step % 40) ||
          (step % 3 == 2   ? poll_one()
           : step % 4 == 1 ? poll<poll_depth / poll_window>(step % 8 == 1 ? 1 + step % 32 : 0)
                           : poll<1>(step % 2 == 0 ? 1 : 0)))
        turn = 0;
      simt::pause(turn, "packets from the host");
    }
  }

 private:
  GROSR_DEVICE bool claim(unsigned most) const {
    std::uint32_t number;
    const unsigned n = packets.claim(number, [&](std::uint32_t) { return most; });
    if (n == 1) record(number, packets.read_staged(number));
    if (n > 1) record_staged(number, n);
    return n != 0;
  }

  GROSR_DEVICE bool poll_one() const {
    poll_lock lock{};
    bool there = false;
    if (simt::lane_id() == 0) there = packets.try_lock({}, lock) && packets.accept_one(lock);
    return simt::any(simt::full_mask, there);
  }

  template <unsigned Parts>
  GROSR_DEVICE bool poll(unsigned most) const {
    poll_lock lock{};
    if (!share_lock(simt::lane_id() == 0 && packets.try_lock({}, lock), lock)) return false;
    const std::uint32_t seen = lock.seen;
    const auto k = packets.poll<Parts>(lock);
    const submission_ring_ref::found f = packets.look_at(lock, k);
    if (f.packets == 0) {
      if (simt::lane_id() == 0) packets.unlock(lock);
      simt::sync_warp();
      return false;
    }
    const unsigned limit = packets.first_is_free(k) ? most : 0,
                   mine = f.alike < limit ? f.alike : limit;
    packets.accept(lock, f.packets, mine, false, true, false, k);
    if (mine == 1) record(seen, held_packet{k.mine[0]});
    if (mine > 1) record_staged(seen, mine);
    return true;
  }

  /// Packets that this warp claimed together: each lane has one.
  GROSR_DEVICE void record_staged(std::uint32_t first, unsigned n) const {
    const unsigned lane = simt::lane_id();
    const std::uint32_t number = first + lane;
    packet got{};
    if (lane < n) {
      packets.read_staged(number, got.word, packet_content);
      packets.free_staged(number);
    }
    // They are alike.
    const std::uint32_t who = simt::shuffle(simt::full_mask, got.word[0], 0);
    const packet expected = content_of(who, got.word[1]);
    bool whole = true;
    for (unsigned k = 0; k < packet_content; ++k) whole = got.word[k] == expected.word[k] && whole;
    log_at(n, lane, number, who, got.word[1], whole);
  }

  GROSR_DEVICE void record(std::uint32_t number, const held_packet& l) const {
    const std::uint32_t who = l.word(0), i = l.word(1);
    const packet expected = content_of(who, i);
    bool whole = true;
    for (unsigned k = 0; k < packet_content; ++k) whole = l.word(k) == expected.word[k] && whole;
    log_at(1, simt::lane_id(), number, who, i, whole);
  }

  /// The warp logs n packets, of which lane k has the k-th.
  GROSR_DEVICE void log_at(unsigned n, unsigned lane, std::uint32_t number, std::uint32_t who,
                           std::uint32_t i, bool whole) const {
    std::uint32_t at = 0;
    if (lane == 0) at = simt::atomic_ref(*count).fetch_add(n, simt::relaxed);
    at = simt::shuffle(simt::full_mask, at, 0) + lane;
    if (lane < n)
      log[at] = {number, who, i, simt::block_id() * (simt::block_size() / 32) + simt::warp_id(),
                 whole ? 1u : 0u};
    simt::sync_warp();
  }
};

}  // namespace grosr::queue
