#include "grosr/queue/submission_ring_owner.hpp"

#include <utility>
#include <vector>

namespace grosr::queue {
namespace {

/// So many packets before it writes one, a submitter asks for its lines: a device that looked at
/// them may have taken them away.
constexpr std::uint32_t packets_ahead = 4;

}  // namespace

submission_ring_memory::submission_ring_memory(device d, std::uint32_t capacity,
                                               std::uint32_t rings)
    : capacity_(capacity),
      control_((check_capacity(capacity, "submission ring", min_packets, max_packets),
                simt::buffer<submission_ring_control>(d, simt::space::device, rings))),
      packets_(d, simt::space::pinned, std::size_t{rings} * capacity * packet_words),
      staged_(d, simt::space::device, std::size_t{rings} * capacity * packet_words),
      next_(d, simt::space::device, std::size_t{rings} * capacity),
      credit_(d, simt::space::pinned, rings * credit_words) {
  std::vector<std::uint32_t> next(std::size_t{rings} * capacity);
  for (std::size_t i = 0; i < next.size(); ++i)
    next[i] = static_cast<std::uint32_t>(i & (capacity - 1));
  next_.copy_from(next);
}

submission_rings_ref submission_ring_memory::refs() const {
  submission_rings_ref r;
  submission_ring_ref& first = r.first_;
  first.control_ = control_.data();
  first.packets_ = packets_.data();
  first.staged_ = staged_.data();
  first.next_ = next_.data();
  first.credit_ = credit_.data();
  first.mask_ = capacity_ - 1;
  return r;
}

submission_ring::submission_ring(std::shared_ptr<const submission_ring_memory> memory,
                                 std::uint32_t number)
    : memory_(std::move(memory)),
      number_(number),
      capacity_(memory_->capacity()),
      packets_(memory_->packets_.data() + std::size_t{number} * capacity_ * packet_words),
      credit_(memory_->credit_.data() + number * credit_words) {}

bool submission_ring::has_room() {
  if (written_ - credit_seen_ < capacity_) return true;
  credit_seen_ = simt::atomic_ref<std::uint32_t, simt::scope::system>(*credit_).load(simt::acquire);
  return written_ - credit_seen_ < capacity_;
}

std::uint32_t submission_ring::write(const packet& content) {
  std::uint32_t number = written_++;
  simt::bus_word* at = packets_ + std::size_t{number & (capacity_ - 1)} * packet_words;
  std::uint32_t lap = lap_of(number, capacity_);
  for (unsigned i = 0; i < packet_words; ++i)
    simt::bus_store_from_host(
        at + i, {{content.word[3 * i], content.word[3 * i + 1], content.word[3 * i + 2], lap}});
  const simt::bus_word* ahead =
      packets_ + std::size_t{(number + packets_ahead) & (capacity_ - 1)} * packet_words;
  __builtin_prefetch(ahead, 1);
  __builtin_prefetch(ahead + packet_words / 2, 1);
  return number;
}

}  // namespace grosr::queue
