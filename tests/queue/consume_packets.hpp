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
      if (claim() || (step % 3 == 2 ? poll_one() : poll(step % 2 == 0))) turn = 0;
      simt::pause(turn, "packets from the host");
    }
  }

 private:
  GROSR_DEVICE bool claim() const {
    std::uint64_t got = 0;
    if (simt::lane_id() == 0) {
      std::uint32_t number;
      if (packets.claim(number)) got = std::uint64_t{1} << 32 | number;
    }
    got = simt::shuffle(simt::full_mask, got, 0);
    if (got == 0) return false;
    const auto number = static_cast<std::uint32_t>(got);
    record(number, packets.read_staged(number));
    return true;
  }

  GROSR_DEVICE bool poll_one() const {
    poll_lock lock{};
    bool there = false;
    if (simt::lane_id() == 0) there = packets.try_lock(0, lock) && packets.accept_one(lock);
    return simt::any(simt::full_mask, there);
  }

  GROSR_DEVICE bool poll(bool take) const {
    poll_lock lock{};
    if (!share_lock(simt::lane_id() == 0 && packets.try_lock(0, lock), lock)) return false;
    const std::uint32_t seen = lock.seen;
    const submission_ring_ref::polled k = packets.poll(lock);
    const unsigned n = packets.valid_packets(lock, k);
    if (n == 0) {
      if (simt::lane_id() == 0) packets.unlock(lock);
      simt::sync_warp();
      return false;
    }
    const bool first = take && packets.first_is_free(k);
    packets.accept(lock, n, first, false, true, false, k);
    if (first) record(seen, {k.mine});
    return true;
  }

  GROSR_DEVICE void record(std::uint32_t number, const held_packet& l) const {
    const std::uint32_t who = l.word(0), i = l.word(1);
    const packet expected = content_of(who, i);
    bool whole = true;
    for (unsigned k = 0; k < packet_content; ++k) whole = l.word(k) == expected.word[k] && whole;
    if (simt::lane_id() == 0) {
      const std::uint32_t at = simt::atomic_ref(*count).fetch_add(1, simt::relaxed);
      log[at] = {number, who, i, simt::block_id() * (simt::block_size() / 32) + simt::warp_id(),
                 whole ? 1u : 0u};
    }
    simt::sync_warp();
  }
};

}  // namespace grosr::queue
