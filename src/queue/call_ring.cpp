#include "grosr/queue/call_ring.hpp"

#include <bit>
#include <cstddef>

namespace grosr::queue {

call_ring::call_ring(device d, std::uint32_t capacity)
    : device_(d),
      capacity_(capacity),
      shift_(static_cast<std::uint32_t>(std::countr_zero(capacity))),
      control_((check_capacity(capacity, "call ring", simt::warp_size),
                simt::buffer<call_ring_control>(d, simt::space::device, 1))),
      words_(d, simt::space::pinned, std::size_t{capacity} * record_words),
      credit_(d, simt::space::pinned, 1) {}

call_ring_ref call_ring::ref() const {
  call_ring_ref r;
  r.control_ = control_.data();
  r.words_ = words_.data();
  r.credit_ = credit_.data();
  r.mask_ = capacity_ - 1;
  r.shift_ = shift_;
  return r;
}

void call_ring::give_credit() {
  // R1: pairs with A1 in has_room().
  simt::atomic_ref<std::uint64_t, simt::scope::system>(credit_[0]).store(consumed_, simt::release);
}

std::uint64_t call_ring::taken() const {
  std::uint64_t tail = 0;
  simt::copy_bytes(
      device_, &tail,
      reinterpret_cast<const std::byte*>(control_.data()) + offsetof(call_ring_control, tail),
      sizeof tail);
  return tail;
}

}  // namespace grosr::queue
