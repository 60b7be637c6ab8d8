// A channel of a graph, as the functions see it that push into it. docs/internals/channels.md.
#pragma once

#include "grosr/queue/batch_buffer.hpp"
#include "grosr/run/context.hpp"

namespace grosr {

namespace flow {
template <class Spawner>
struct channel_service;
}

/// Places in a channel that are one lane's until it says that they are ready: each has to be made
/// ready once, for the channel is full at last otherwise. Trivially copyable.
template <class T>
class reservation {
 public:
  reservation() = default;
  GROSR_DEVICE reservation(queue::batch_buffer_ref<T> channel, std::uint64_t first,
                           std::uint32_t count)
      : channel_(channel), first_(first), count_(count) {}

  /// False: there was no room.
  GROSR_DEVICE explicit operator bool() const { return count_ != 0; }
  /// How many; 0 without room, and when it was made ready.
  GROSR_DEVICE std::uint32_t size() const { return count_; }
  /// Element i, below size(), to be written in place. Of a type in rows.
  GROSR_DEVICE T& operator[](std::uint32_t i) const {
    return channel_.at(channel_.place_of(first_ + i));
  }
  /// Writes element i, of any layout.
  GROSR_DEVICE void write(std::uint32_t i, const T& value) const {
    channel_.store(channel_.place_of(first_ + i), value);
  }
  /// Its elements are written: they can be served. Nothing is left of it.
  template <class Context>
  GROSR_DEVICE void ready(Context& context) {
    if (count_ == 0) return;
    const std::uint32_t mask =
        simt::active_mask_by(reinterpret_cast<std::uint64_t>(channel_.address()), false);
    flow::channel_service<typename Context::spawner_type>::ready(
        context, channel_.address(), channel_.enq(mask, first_, count_));
    *this = {};
  }

 private:
  queue::batch_buffer_ref<T> channel_;
  std::uint64_t first_ = queue::no_ticket;
  std::uint32_t count_ = 0;
};

/// A channel of a graph, for the functions that push into it: a member of theirs, 8 bytes. All
/// calls may be made by any lanes, also after they diverged; those that are together share them.
template <class T>
class channel {
 public:
  using element = T;
  channel() = default;
  explicit channel(queue::batch_buffer_state* s) : channel_(s) {}

  /// Hands an element over, for each lane that calls. When the channel is full it becomes a task of
  /// its own: it takes task memory as context.spawn() does. So does, for a function of single
  /// elements, the first that a lane pushes by itself in a run of one task while workers wait for
  /// work, if there is room: none would join it soon. If nobody can make room for what found the
  /// channel full, it is lost, and element_graph::wait() throws; so it does for a channel of
  /// another graph.
  template <class Context>
  GROSR_DEVICE void push(Context& context, const T& value) const {
    if (!owned(context, 1)) return;
    const std::uint32_t mask = here();
    if (at<Context>::goes_alone(context, channel_.state(), mask)) [[unlikely]]
      if (at<Context>::push_alone(context, channel_, value)) return;
    if (!push_owned(context, mask, value)) at<Context>::push_refused(context, channel_, value);
  }

  /// The same if there is room now; false when the channel is full.
  template <class Context>
  GROSR_DEVICE bool try_push(Context& context, const T& value) const {
    return owned(context, 1) && push_owned(context, here(), value);
  }

  /// Places for n elements, 1 to 32, that follow each other; none when there is no room, or for
  /// another n.
  template <class Context>
  GROSR_DEVICE reservation<T> reserve(Context& context, std::uint32_t n) const {
    if (n == 0 || n > 32 || !owned(context, n)) return {};
    std::uint64_t first = channel_.talloc(here(), n);
    // All together may want more than there is.
    if (first == queue::no_ticket) first = channel_.talloc(1u << simt::lane_id(), n);
    return {channel_, first, first == queue::no_ticket ? 0 : n};
  }

  GROSR_DEVICE queue::batch_buffer_ref<T> ref() const { return channel_; }
  queue::batch_buffer_state* state() const { return channel_.address(); }

 private:
  template <class Context>
  using at = flow::channel_service<typename Context::spawner_type>;

  template <class Context>
  GROSR_DEVICE bool owned(Context& context, std::uint32_t n) const {
    static_assert(at<Context>::serves,
                  "grosr: only functions of a graph push into its channels: a task of a runtime "
                  "cannot; let the host push, or make the task a function of the graph");
    return at<Context>::owns(context, channel_.address(), n);
  }

  /// Lanes of `mask` together.
  template <class Context>
  GROSR_DEVICE bool push_owned(Context& context, std::uint32_t mask, const T& value) const {
    const std::uint64_t ticket = channel_.talloc(mask);
    if (ticket == queue::no_ticket) return false;
    channel_.store(channel_.place_of(ticket), value);
    at<Context>::ready(context, channel_.address(), channel_.enq(mask, ticket));
    return true;
  }

  /// The lanes that are at the same call, for the same channel.
  GROSR_DEVICE std::uint32_t here(simt::site where = simt::site::here()) const {
    return simt::active_mask_by(reinterpret_cast<std::uint64_t>(channel_.address()), false, where);
  }

  queue::batch_buffer_ref<T> channel_;
};

}  // namespace grosr
