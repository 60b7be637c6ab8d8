#include "run/swap.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "run/host_word.hpp"

namespace grosr::run {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::microseconds least_backoff = 20us, most_backoff = 5ms;
constexpr std::chrono::microseconds holding_backoff =
    100us;  // while workers may run out of packets
constexpr std::size_t packet_tasks = simt::warp_size;
constexpr std::size_t most_packets_out = 64;

}  // namespace

swap_space::swap_space(device d, std::uint32_t records, std::vector<std::uint32_t> bytes,
                       std::size_t limit, std::uint32_t& full, owner o)
    : records_(d, records),
      bytes_(std::move(bytes)),
      limit_(limit),
      full_(full),
      owner_(std::move(o)),
      stacks_(bytes_.size() * priority_levels) {
  out_.reserve(most_packets_out);
  host_word(full_).store(limit_ == 0 ? 1 : 0, simt::relaxed);
}

swap_space::~swap_space() { stop(); }

void swap_space::stop() {
  {
    std::lock_guard lock(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void swap_space::start() {
  thread_ = std::thread([this] { work(); });
}

void swap_space::wake() {
  {
    std::lock_guard lock(lock_);
    woken_ = true;
  }
  wake_.notify_all();
}

void swap_space::work() {
  auto backoff = least_backoff;
  for (;;) {
    const bool idle = held_ == 0 && !owner_.has_kernel() && !records_.ready();
    {
      std::unique_lock lock(lock_);
      const auto due = [&] { return stop_ || woken_; };
      if (idle)
        wake_.wait(lock, due);
      else
        wake_.wait_for(lock, backoff, due);
      if (stop_) return;
      woken_ = false;
    }
    const bool taken = take(), given = give(), completed = owner_.complete();
    const bool holds = held_ != 0 || owner_.completions();
    backoff = taken || given || completed
                  ? least_backoff
                  : std::min(2 * backoff, holds ? holding_backoff : most_backoff);
  }
}

// Takes what the device has sent. More than the limit only because the device learns of it late.
bool swap_space::take() {
  bool room = true;
  std::size_t count = 0;
  constexpr std::size_t in_first = sizeof task_ / 2;
  records_.pop_while([&](const queue::record& r, std::uint64_t) {
    std::memcpy(task_.data() + (half_ ? in_first : 0), r.word, in_first);
    if (!half_) first_ = r.part[0];
    const bool two = (first_ >> 16 & 1) != 0;
    half_ = !half_ && two;
    if (half_) return queue::pop_result::more;
    const std::uint32_t type = first_ & 0xff, level = first_ >> 8 & 0xff;
    room = keep(kind_of(type, level), task_.data(), bytes_[type]);
    if (room) ++count;
    if (!room) half_ = two;  // the record stays, and is read again
    return room ? queue::pop_result::more : queue::pop_result::left;
  });
  records_.give_credit();
  const bool full = !owner_.leaves() && (!room || held_ >= limit_);
  host_word(full_).store(full ? 1 : 0, simt::relaxed);
  moved_.fetch_add(count, std::memory_order_relaxed);
  return count != 0;
}

// False when the host has no memory for it.
bool swap_space::keep(std::uint32_t kind, const std::byte* task, std::size_t bytes) {
  auto& packets = stacks_[kind].packets;
  try {
    if (packets.empty() || packets.back().size() == packet_tasks * bytes) {
      std::vector<std::byte> packet;
      packet.reserve(packet_tasks * bytes);
      packets.push_back(std::move(packet));
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  packets.back().insert(packets.back().end(), task, task + bytes);
  held_ += bytes;
  return true;
}

// Brings tasks back, the most urgent and newest first, in few packets at a time: others submit too.
bool swap_space::give() {
  std::erase_if(out_, [&](ticket_id t) { return owner_.done(t); });
  bool some = false;
  for (unsigned level = priority_levels; level-- > 0;)
    for (unsigned type = 0; type < bytes_.size(); ++type) {
      auto& packets = stacks_[kind_of(type, level)].packets;
      while (!packets.empty() && out_.size() < most_packets_out) {
        const auto count = static_cast<std::uint32_t>(packets.back().size() / bytes_[type]);
        std::optional<ticket_id> t;
        try {
          t = owner_.bring_back(type, level, packets.back().data(), count);
        } catch (const error&) {  // the runtime is lost, and whoever waits learns it
        }
        if (!t) return some;
        held_ -= packets.back().size();
        packets.pop_back();
        out_.push_back(*t);
        moved_.fetch_add(1, std::memory_order_relaxed);
        some = true;
      }
    }
  return some;
}

}  // namespace grosr::run
