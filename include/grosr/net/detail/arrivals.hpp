// What has come to a rank: its chunks that are whole, in a queue for each class of links.
// docs/internals/messages.md, "Arrivals".
#pragma once

#include <cstdint>

#include "grosr/simt/global_ref.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::net {

/// A chunk of the link from a rank: what lies in a place of the queue, never 0. Where a thread of
/// the host writes it, with the lap of the place; else without.
struct arrival {
  std::uint64_t chunk;
  std::uint32_t from;

  static constexpr unsigned from_at = 52;
  static constexpr std::uint64_t lap_bit = std::uint64_t{1} << 63, there = std::uint64_t{1} << 62;
  GROSR_DEVICE static constexpr std::uint64_t lap(std::uint64_t ticket, std::uint32_t shift) {
    return (ticket >> shift & 1) != 0 ? 0 : lap_bit;
  }
  GROSR_DEVICE constexpr std::uint64_t word() const {
    return there | std::uint64_t{from} << from_at | chunk;
  }
  GROSR_DEVICE static constexpr arrival of(std::uint64_t word) {
    return {word & ((std::uint64_t{1} << from_at) - 1),
            static_cast<std::uint32_t>((word & ~(lap_bit | there)) >> from_at)};
  }
};

/// Chunks that are claimed at once, at most.
inline constexpr std::uint32_t most_chunks = 4;

/// There is a place for each chunk of each link, so that who takes what was in a place before has
/// claimed it when it is written again, and is about to take it.
struct arrivals {
  // Written by the host, before anything runs.
  std::uint64_t* near;       ///< places for chunks of ranks of this process: the receiver's memory
  std::uint64_t* far;        ///< for those of others: pinned; a thread of the host alone fills them
  std::uint64_t* far_taken;  ///< for each of those places: the ticket that was taken last, and 1
  std::uint64_t* far_count;  ///< how many that has filled; null: there are no other processes
  std::uint32_t near_shift, far_shift;  ///< log2 of the places
  // Shared by all lanes of the process.
  alignas(128) std::uint64_t tail;
  alignas(128) std::uint64_t available;  ///< signed: whole chunks that nobody has claimed
  // Shared by lanes of the receiver.
  alignas(128) std::uint64_t head;
  alignas(128) std::uint64_t far_head;
};

/// Chunks that follow each other in the queue.
struct claimed_chunks {
  std::uint64_t first = 0;  ///< ticket
  std::uint32_t count = 0;
  bool far = false;
};

/// Any lanes.
class arrivals_ref {
 public:
  GROSR_DEVICE explicit arrivals_ref(arrivals& a) : a_(a) {}

  /// One lane, of any rank of the process: a chunk is whole. Its words may still be on their way;
  /// who reads it looks at each.
  GROSR_DEVICE void push(arrival what) const {
    const std::uint64_t ticket = everywhere(a_.tail).fetch_add(1, simt::relaxed);
    const auto place = everywhere(a_.near[ticket & places(a_.near_shift)]);
    const auto put = [&] {
      std::uint64_t nothing = 0;
      return place.compare_exchange(nothing, what.word(), simt::in_turn());
    };
    if (!put()) wait_for(put, "who takes what was there");
    everywhere(a_.available).store_add(1, simt::in_turn());
  }

  /// One lane of the receiver: how many chunks there are to claim, as far as is known.
  GROSR_DEVICE std::uint32_t near_count() const {
    const auto n = static_cast<std::int64_t>(everywhere(a_.available).load(simt::relaxed));
    return n > 0 ? static_cast<std::uint32_t>(n) : 0;
  }
  GROSR_DEVICE std::uint32_t far_count() const {
    if (a_.far_count == nullptr) return 0;
    const std::uint64_t head = simt::global_ref<std::uint64_t>(a_.far_head).load(simt::relaxed);
    return static_cast<std::uint32_t>(everywhere(*a_.far_count).load(simt::before_store()) - head);
  }

  /// One lane of the receiver: claims at most `most` chunks where near_count() was `seen`, a part
  /// of them so that others have some.
  GROSR_DEVICE claimed_chunks claim(std::uint32_t seen, std::uint32_t most) const {
    // Those of other processes have their turn also where others never end.
    if (a_.far_count != nullptr && (seen == 0 || (simt::cycle_count() >> 4 & 7) == 0)) {
      const claimed_chunks c = claim_far(most);
      if (c.count != 0) return c;
    }
    if (seen == 0) return {};
    const std::uint32_t half = (seen + 1) / 2, wanted = half < most ? half : most;
    const auto found = static_cast<std::int64_t>(
        everywhere(a_.available).fetch_add(0 - std::uint64_t{wanted}, simt::in_turn()));
    std::uint32_t got = wanted;
    if (found < static_cast<std::int64_t>(wanted)) [[unlikely]] {
      got = found > 0 ? static_cast<std::uint32_t>(found) : 0;
      everywhere(a_.available).store_add(wanted - got, simt::in_turn());
      if (got == 0) return {};
    }
    return {simt::global_ref<std::uint64_t>(a_.head).fetch_add(got, simt::relaxed), got, false};
  }

  /// One lane: takes a chunk that it has claimed. Who pushed one may be about to say which it is.
  GROSR_DEVICE arrival take(std::uint64_t ticket, bool far) const {
    return far ? take_far(ticket) : take_near(ticket);
  }

 private:
  GROSR_DEVICE arrival take_near(std::uint64_t ticket) const {
    const auto place = everywhere(a_.near[ticket & places(a_.near_shift)]);
    std::uint64_t word = 0;
    const auto get = [&] {
      word = place.load(simt::relaxed);
      return word != 0 && place.compare_exchange(word, 0, simt::in_turn());
    };
    if (!get()) wait_for(get, "the name of a chunk");
    return arrival::of(word);
  }
  GROSR_DEVICE GROSR_NOINLINE arrival take_far(std::uint64_t ticket) const {
    const std::uint64_t at = ticket & places(a_.far_shift);
    const std::uint64_t lap = arrival::lap(ticket, a_.far_shift);
    std::uint64_t word = 0;
    const auto is_there = [&] {
      word = everywhere(a_.far[at]).load(simt::before_store());
      return (word & arrival::there) != 0 && ((word ^ lap) & arrival::lap_bit) == 0;
    };
    if (!is_there()) wait_for(is_there, "the name of a chunk");
    everywhere(a_.far_taken[at]).store(ticket + 1, simt::release);
    return arrival::of(word);
  }
  template <class Predicate>
  GROSR_DEVICE static void wait_for(const Predicate& is_true, const char* what) {
    simt::wait_until(is_true, simt::forever, nullptr, what);
  }
  GROSR_DEVICE GROSR_NOINLINE claimed_chunks claim_far(std::uint32_t most) const {
    simt::global_ref<std::uint64_t> head(a_.far_head);
    std::uint64_t first = head.load(simt::relaxed);
    const std::uint64_t there = everywhere(*a_.far_count).load(simt::before_store()) - first;
    const std::uint32_t n = there < most ? static_cast<std::uint32_t>(there) : most;
    if (n == 0 || !head.compare_exchange(first, first + n, simt::relaxed)) return {};
    return {first, n, true};
  }
  GROSR_DEVICE static std::uint64_t places(std::uint32_t shift) {
    return (std::uint64_t{1} << shift) - 1;
  }
  GROSR_DEVICE static simt::global_ref<std::uint64_t, simt::scope::system> everywhere(
      std::uint64_t& word) {
    return simt::global_ref<std::uint64_t, simt::scope::system>(word);
  }
  arrivals& a_;
};

}  // namespace grosr::net
