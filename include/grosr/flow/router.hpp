// Sending elements to one of many channels: lanes that want the same one reserve together, of a
// warp (direct), or of some thousand elements that a block sorts first (indirect).
#pragma once

#include "grosr/flow/detail/serve.hpp"

namespace grosr {

/// How the elements of a router are collected.
///   direct    lanes of a warp that push together, by channel
///   indirect  all go into one channel of the router's own; a block takes up to 1024 of them, and
///             reserves once for all that go to the same channel
///   by_count  direct up to `direct_targets` channels, as many as a graph has: that was faster for
///             1 to 60 of them (docs/internals/channels.md)
enum class aggregation : std::uint8_t { by_count, direct, indirect };
inline constexpr std::uint32_t direct_targets = 64;

struct router_options {
  grosr::aggregation aggregation = aggregation::by_count;
  std::uint32_t capacity = 1u << 15;  ///< of its own channel, as any; better from 2048
  std::string name = "router";        ///< of that, in reports
};

namespace flow {
/// Lies in rows, whatever T says.
template <class T>
struct routed {
  T value;
  std::uint32_t target;
};
}  // namespace flow

/// Sends elements to channels by their number: a member of a function, 24 bytes. Any lanes may
/// push.
template <class T>
class router {
 public:
  router() = default;
  router(const channel<T>* targets, std::uint32_t count, channel<flow::routed<T>> via)
      : targets_(targets), via_(via), count_(count) {}

  /// Hands an element over to channel `target`, 0 to size() - 1; for another one, wait() throws.
  /// An element that finds no room in the router's own channel goes to its target at once.
  template <class Context>
  GROSR_DEVICE void push(Context& context, std::uint32_t target, const T& value) const {
    using at = flow::channel_service<typename Context::spawner_type>;
    if (target >= count_) return at::count_foreign(context, 1);
    if (via_.ref().address() != nullptr) {
      if (!at::owns(context, via_.ref().address(), 1)) return;
      if (via_.try_push(context, flow::routed<T>{value, target})) return;
    }
    targets_[target].push(context, value);
  }

  /// How many channels it has.
  GROSR_DEVICE std::uint32_t size() const { return count_; }
  /// Whether a block sorts what is pushed.
  bool indirect() const { return via_.state() != nullptr; }

 private:
  const channel<T>* targets_ = nullptr;
  channel<flow::routed<T>> via_;
  std::uint32_t count_ = 0;
};

/// The function that serves indirect routers of T: name it among a graph's functions. Elements have
/// at most 52 bytes then, 48 if aligned to 8, 32 if aligned to 16.
template <class T>
struct route {
  static_assert(
      sizeof(flow::routed<T>) + (alignof(T) == 16 ? 16 : 8) <= run::max_task_bytes,
      "grosr: an element that goes through an indirect router has at most 52 bytes, 48 if "
      "it is aligned to 8, 32 if to 16: put larger data behind a pointer");
  using element = flow::routed<T>;
  static constexpr grosr::width width = grosr::width::block;
  static constexpr std::uint32_t batch = 1024;
  const channel<T>* targets;
  std::uint32_t count;

  /// A counting sort that moves nothing but to where it goes: numbers within a target, a place for
  /// each number, elements, entries.
  GROSR_DEVICE void operator()(const grosr::batch<element>& some, auto& context) const {
    using at = flow::channel_service<typename std::remove_cvref_t<decltype(context)>::spawner_type>;
    constexpr std::uint32_t per_thread = batch / run::block_threads, none = ~0u;
    const flow::scratch& s = some.scratch();
    std::uint32_t* counts = s.own<std::uint32_t>(0);  // of elements, by target
    std::uint64_t* tickets = s.own<std::uint64_t>(1);
    std::uint64_t* entries = s.own<std::uint64_t>(2);
    const std::uint32_t rank = context.rank(), lane = simt::lane_id();
    if (rank < count) counts[rank] = 0;
    context.sync();
    std::uint32_t number[per_thread];  // within its target, which is in the upper half
    for (std::uint32_t k = 0; k < per_thread; ++k) {
      const std::uint32_t i = k * run::block_threads + rank;
      const std::uint32_t here = simt::ballot(simt::full_mask, i < some.size());
      number[k] = none;
      if (i >= some.size()) continue;
      const std::uint32_t target = some[i].target, peers = simt::match_any(here, target);
      const unsigned leader = simt::lowest_bit(peers);
      std::uint32_t before = 0;
      if (lane == leader) before = simt::shared_add(counts[target], simt::popcount(peers));
      before = simt::shuffle(peers, before, leader);
      number[k] = target << 16 | (before + simt::rank_in(peers, lane));
    }
    context.sync();
    if (rank < count)
      tickets[rank] =
          counts[rank] != 0 ? targets[rank].ref().claim(counts[rank]) : queue::no_ticket;
    context.sync();
    for (std::uint32_t k = 0; k < per_thread; ++k) {
      if (number[k] == none) continue;
      const std::uint32_t target = number[k] >> 16;
      const T value = some[k * run::block_threads + rank].value;
      if (tickets[target] == queue::no_ticket) {  // together they want more than there is
        targets[target].push(context, value);
        continue;
      }
      const auto channel = targets[target].ref();
      channel.store(channel.place_of(tickets[target] + (number[k] & 0xffff)), value);
    }
    simt::fence(simt::release);  // as in batch_buffer_base::enq(): what this thread puts
    context.sync();
    if (rank < count && tickets[rank] != queue::no_ticket)
      entries[rank] = targets[rank].ref().announce(counts[rank]);
    context.sync();
    // In any order: others may wait for any of these.
    std::uint32_t left = 0;
    for (std::uint32_t k = 0; k < per_thread; ++k)
      if (number[k] != none && tickets[number[k] >> 16] != queue::no_ticket) left |= 1u << k;
    const std::uint32_t mine = left;
    simt::wait_until(
        [&] {
          for (std::uint32_t k = 0; k < per_thread; ++k) {
            if ((left >> k & 1) == 0) continue;
            const std::uint32_t target = number[k] >> 16, i = number[k] & 0xffff;
            const auto channel = targets[target].ref();
            if (channel.try_put(entries[target] + i, channel.place_of(tickets[target] + i)))
              left &= ~(1u << k);
          }
          return left == 0;
        },
        simt::forever, nullptr, "the last readers of channels' entries");
    for (std::uint32_t k = 0; k < per_thread; ++k) {
      if ((mine >> k & 1) == 0) continue;
      const auto channel = targets[number[k] >> 16].ref();
      at::ready(context, channel.address(),
                channel.batches_in(entries[number[k] >> 16] + (number[k] & 0xffff), 1));
    }
  }
};

}  // namespace grosr
