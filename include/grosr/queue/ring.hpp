// A bounded queue in device memory: many producers, many consumers, groups reserve together.
//
//   control   reserved ─ cells promised to producers and not yet given back by consumers
//             ready    ─ cells written and not yet promised to consumers
//             tail, head ─ tickets; each counter on a line of its own
//   cell i    sequence[i], then data[i];   ticket t uses cell t mod capacity, lap t div capacity
//             sequence 2*lap    : free for the producer with that ticket
//             sequence 2*lap + 1: holds its value
//   laps are counted modulo 2^32 / capacity, so that tickets may wrap
//
// Counts reserved apart from tickets make full and empty answers immediate (Kerbl et al., "The
// Broker Queue", ICS 2018). Progress: a try_ call answers without waiting when the queue is full
// or empty; when it got a ticket it may wait for the one peer that holds the same cell and is
// between its own reservation and its last store. Successful operations are linearizable as a
// FIFO; a failure may be spurious while another operation is under way.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "grosr/simt/atomic.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/shared.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::queue {

struct ring_control {
  alignas(128) std::uint32_t reserved;
  alignas(128) std::uint32_t ready;
  alignas(128) std::uint32_t tail;
  alignas(128) std::uint32_t head;
};

/// The device's view of a ring<T>; passed to kernels by value. All calls are thread-safe.
template <class T>
class ring_ref {
  static_assert(std::is_trivially_copyable_v<T>, "grosr: a ring holds trivially copyable types");

 public:
  ring_ref() = default;
  ring_ref(ring_control* control, std::uint32_t* sequence, T* data, std::uint32_t capacity)
      : control_(control), sequence_(sequence), data_(data), mask_(capacity - 1) {}

  GROSR_DEVICE std::uint32_t capacity() const { return mask_ + 1; }

  /// Elements written and not yet promised to a consumer, at some moment during the call.
  GROSR_DEVICE std::uint32_t ready() const {
    std::uint32_t n = simt::atomic_ref<std::uint32_t>(control_->ready).load(simt::acquire);
    return static_cast<std::int32_t>(n) > 0 ? n : 0;
  }

  /// Each lane of `mask` offers one value; one reservation serves them all. True for the lanes
  /// whose value went in: the first k of the mask when only k cells were free.
  GROSR_DEVICE bool try_push(std::uint32_t mask, const T& value) const {
    unsigned lane = simt::lane_id(), leader = simt::lowest_bit(mask);
    std::uint64_t grant = 0;
    if (lane == leader) grant = reserve(control_->reserved, control_->tail, simt::popcount(mask));
    grant = simt::shuffle(mask, grant, leader);
    unsigned rank = simt::rank_in(mask, lane), count = static_cast<unsigned>(grant >> 32);
    if (rank < count) write(static_cast<std::uint32_t>(grant) + rank, value);
    simt::sync_warp(mask);
    // R1: one release for the group, after all its cells; pairs with A1 in take().
    if (lane == leader && count != 0) announce(count);
    return rank < count;
  }

  /// Each lane of `mask` asks for one value; true for the lanes that got one, the first k.
  GROSR_DEVICE bool try_pop(std::uint32_t mask, T& value) const {
    unsigned lane = simt::lane_id(), leader = simt::lowest_bit(mask);
    std::uint64_t grant = 0;
    if (lane == leader) grant = take(simt::popcount(mask));
    grant = simt::shuffle(mask, grant, leader);
    unsigned rank = simt::rank_in(mask, lane), count = static_cast<unsigned>(grant >> 32);
    if (rank < count) value = read(static_cast<std::uint32_t>(grant) + rank);
    simt::sync_warp(mask);
    if (lane == leader && count != 0) give_back(count);
    return rank < count;
  }

  /// One lane alone pushes `count` values; returns how many went in.
  GROSR_DEVICE std::uint32_t try_push_n(const T* values, std::uint32_t count) const {
    std::uint64_t grant = reserve(control_->reserved, control_->tail, count);
    std::uint32_t n = static_cast<std::uint32_t>(grant >> 32);
    if (n == 0) return 0;
    const auto first = static_cast<std::uint32_t>(grant);
    for (std::uint32_t i = 0; i < n; ++i) lay(first + i, values[i]);
    simt::fence(simt::release);  // R3 and R1 for all of them
    for (std::uint32_t i = 0; i < n; ++i)
      sequence_of(first + i).store(lap(first + i) * 2 + 1, simt::relaxed);
    simt::atomic_ref<std::uint32_t>(control_->ready).fetch_add(n, simt::relaxed);
    return n;
  }

  /// One lane alone pops up to `count` values; returns how many it got.
  GROSR_DEVICE std::uint32_t try_pop_n(T* values, std::uint32_t count) const {
    std::uint64_t grant = take(count);
    std::uint32_t n = static_cast<std::uint32_t>(grant >> 32);
    if (n == 0) return 0;
    const auto first = static_cast<std::uint32_t>(grant);
    for (std::uint32_t i = 0; i < n; ++i)
      simt::wait_until([&] { return written(first + i, simt::relaxed); }, simt::forever, nullptr,
                       "the writer of a queue cell");
    simt::fence(simt::acquire);  // A3 for all of them
    for (std::uint32_t i = 0; i < n; ++i) values[i] = data_[(first + i) & mask_];
    simt::fence(simt::release);  // R2: pairs with A2 in lay()
    for (std::uint32_t i = 0; i < n; ++i)
      sequence_of(first + i).store(lap(first + i + capacity()) * 2, simt::relaxed);
    simt::atomic_ref<std::uint32_t>(control_->reserved).fetch_sub(n, simt::relaxed);
    return n;
  }

  /// Every thread of the block calls; those with `wants` push. One reservation serves the block.
  GROSR_DEVICE bool try_push_block(bool wants, const T& value) const {
    block_group& g = simt::block_shared<block_group>();
    unsigned rank = block_rank(g, wants);
    if (simt::thread_id() == 0)
      g.grant = g.total ? reserve(control_->reserved, control_->tail, g.total) : 0;
    simt::sync_block();
    std::uint64_t grant = g.grant;
    unsigned count = static_cast<unsigned>(grant >> 32);
    bool in = wants && rank < count;
    if (in) write(static_cast<std::uint32_t>(grant) + rank, value);
    simt::sync_block();
    if (simt::thread_id() == 0 && count != 0) announce(count);
    return in;
  }

  /// Every thread of the block calls; those with `wants` pop. One reservation serves the block.
  GROSR_DEVICE bool try_pop_block(bool wants, T& value) const {
    block_group& g = simt::block_shared<block_group>();
    unsigned rank = block_rank(g, wants);
    if (simt::thread_id() == 0) g.grant = g.total ? take(g.total) : 0;
    simt::sync_block();
    std::uint64_t grant = g.grant;
    unsigned count = static_cast<unsigned>(grant >> 32);
    bool got = wants && rank < count;
    if (got) value = read(static_cast<std::uint32_t>(grant) + rank);
    simt::sync_block();
    if (simt::thread_id() == 0 && count != 0) give_back(count);
    return got;
  }

 private:
  struct block_group {
    std::uint64_t grant;
    std::uint32_t total;
    std::uint32_t first[32];
  };

  // Promises up to `count` cells: count << 32 | first ticket, or 0.
  GROSR_DEVICE std::uint64_t reserve(std::uint32_t& counter, std::uint32_t& ticket,
                                     std::uint32_t count) const {
    simt::atomic_ref<std::uint32_t> reserved(counter);
    std::uint32_t before = reserved.fetch_add(count, simt::acquire);
    std::uint32_t room = before < capacity() ? capacity() - before : 0;
    std::uint32_t n = count < room ? count : room;
    if (n != count) reserved.fetch_sub(count - n, simt::relaxed);
    if (n == 0) return 0;
    std::uint32_t first = simt::atomic_ref<std::uint32_t>(ticket).fetch_add(n, simt::relaxed);
    return std::uint64_t{n} << 32 | first;
  }

  GROSR_DEVICE std::uint64_t take(std::uint32_t count) const {
    simt::atomic_ref<std::uint32_t> ready(control_->ready);
    // A look first: an empty queue costs its readers no atomic.
    if (static_cast<std::int32_t>(ready.load(simt::relaxed)) <= 0) return 0;
    // A1: pairs with R1 in try_push.
    auto before = static_cast<std::int32_t>(ready.fetch_sub(count, simt::acquire));
    std::uint32_t have = before > 0 ? static_cast<std::uint32_t>(before) : 0;
    std::uint32_t n = count < have ? count : have;
    if (n != count) ready.fetch_add(count - n, simt::relaxed);
    if (n == 0) return 0;
    std::uint32_t first =
        simt::atomic_ref<std::uint32_t>(control_->head).fetch_add(n, simt::relaxed);
    return std::uint64_t{n} << 32 | first;
  }

  GROSR_DEVICE void announce(std::uint32_t count) const {
    simt::atomic_ref<std::uint32_t>(control_->ready).fetch_add(count, simt::release);
  }

  GROSR_DEVICE void give_back(std::uint32_t count) const {
    simt::atomic_ref<std::uint32_t>(control_->reserved).fetch_sub(count, simt::release);
  }

  GROSR_DEVICE simt::atomic_ref<std::uint32_t> sequence_of(std::uint32_t ticket) const {
    return simt::atomic_ref<std::uint32_t>(sequence_[ticket & mask_]);
  }

  GROSR_DEVICE bool written(std::uint32_t ticket, simt::order o) const {
    return sequence_of(ticket).load(o) == lap(ticket) * 2 + 1;
  }

  // Puts a value where its cell's last reader has finished.
  GROSR_DEVICE void lay(std::uint32_t ticket, const T& value) const {
    // A2: pairs with R2 in read().
    simt::wait_until([&] { return sequence_of(ticket).load(simt::acquire) == lap(ticket) * 2; },
                     simt::forever, nullptr, "the last reader of a queue cell");
    data_[ticket & mask_] = value;
  }

  GROSR_DEVICE void write(std::uint32_t ticket, const T& value) const {
    lay(ticket, value);
    sequence_of(ticket).store(lap(ticket) * 2 + 1, simt::release);  // R3: pairs with A3 in read()
  }

  GROSR_DEVICE T read(std::uint32_t ticket) const {
    // A3: pairs with R3 in write().
    simt::wait_until([&] { return written(ticket, simt::acquire); }, simt::forever, nullptr,
                     "the writer of a queue cell");
    T value = data_[ticket & mask_];
    // R2: pairs with A2 in lay(). Laps wrap with the tickets.
    sequence_of(ticket).store(lap(ticket + capacity()) * 2, simt::release);
    return value;
  }

  GROSR_DEVICE std::uint32_t lap(std::uint32_t ticket) const {
    return (ticket & ~mask_) / (mask_ + 1);
  }

  // Rank of this thread among those of the block that want; g.total gets their number.
  GROSR_DEVICE static unsigned block_rank(block_group& g, bool wants) {
    std::uint32_t votes = simt::ballot(simt::full_mask, wants);
    simt::sync_block();  // the last use of g by every thread is over
    if (simt::lane_id() == 0) g.first[simt::warp_id()] = simt::popcount(votes);
    simt::sync_block();
    if (simt::thread_id() == 0) {
      std::uint32_t sum = 0;
      for (unsigned w = 0; w < simt::block_size() / simt::warp_size; ++w) {
        std::uint32_t n = g.first[w];
        g.first[w] = sum;
        sum += n;
      }
      g.total = sum;
    }
    simt::sync_block();
    return g.first[simt::warp_id()] + simt::rank_in(votes, simt::lane_id());
  }

  ring_control* control_ = nullptr;
  std::uint32_t* sequence_ = nullptr;
  T* data_ = nullptr;
  std::uint32_t mask_ = 0;
};

/// Rejects capacities that a ring cannot have; `what` names the queue in the text.
inline void check_capacity(std::uint64_t capacity, const std::string& what, std::uint64_t least = 2,
                           std::uint64_t most = 1u << 30) {
  if (capacity < least || capacity > most || !std::has_single_bit(capacity))
    throw error(errc::invalid_option, what + ": a capacity of " + std::to_string(capacity) +
                                          " was asked for; it must be a power of two from " +
                                          std::to_string(least) + " to " + std::to_string(most));
}

/// Owner of a ring in device memory. Movable. T is trivially copyable.
template <class T>
class ring {
 public:
  ring() = default;
  /// Throws error(invalid_option) unless `capacity` is a power of two from 2 to 2^30.
  ring(device d, std::uint32_t capacity)
      : device_(d),
        control_((check_capacity(capacity, "queue"),
                  simt::buffer<ring_control>(d, simt::space::device, 1))),
        sequence_(d, simt::space::device, capacity),
        data_(d, simt::space::device, capacity) {}

  ring_ref<T> ref() const {
    return {control_.data(), sequence_.data(), data_.data(),
            static_cast<std::uint32_t>(data_.size())};
  }

  /// Fills a new ring with value(0) ... value(count - 1), from the host, before any kernel uses it.
  template <class Value>
  void fill(std::uint32_t count, Value&& value) {
    std::vector<std::uint32_t> sequence(count, 1);
    std::vector<T> data(count);
    for (std::uint32_t i = 0; i < count; ++i) data[i] = value(i);
    ring_control control{count, count, count, 0};
    simt::copy_bytes(device_, sequence_.data(), sequence.data(), count * sizeof(std::uint32_t));
    simt::copy_bytes(device_, data_.data(), data.data(), count * sizeof(T));
    simt::copy_bytes(device_, control_.data(), &control, sizeof control);
  }

  /// Device memory that a ring of this capacity takes.
  static std::size_t bytes(std::size_t capacity) {
    return sizeof(ring_control) + capacity * (sizeof(std::uint32_t) + sizeof(T));
  }

 private:
  device device_;
  simt::buffer<ring_control> control_;
  simt::buffer<std::uint32_t> sequence_;
  simt::buffer<T> data_;
};

}  // namespace grosr::queue
