#include "grosr/queue/egress.hpp"

namespace grosr::queue {

egress::egress(device d, std::uint32_t capacity)
    : capacity_(capacity),
      control_((check_capacity(capacity, "egress lines"),
                simt::buffer<egress_control>(d, simt::space::device, 1))),
      lines_(d, simt::space::pinned, std::size_t{capacity} * line_words),
      credit_(d, simt::space::pinned, 1) {
  if (capacity < simt::warp_size)
    throw error(errc::invalid_option, "egress lines: a capacity of " + std::to_string(capacity) +
                                          " was asked for; the least is 32");
}

egress_ref egress::ref() const {
  egress_ref r;
  r.control_ = control_.data();
  r.lines_ = lines_.data();
  r.credit_ = credit_.data();
  r.mask_ = capacity_ - 1;
  return r;
}

bool egress::try_pop(line& content) {
  const simt::bus_word* at = lines_.data() + (consumed_ & (capacity_ - 1)) * line_words;
  if (!read_line(at, content, lap_of(consumed_, capacity_))) return false;
  ++consumed_;
  // R1: pairs with A1 in reserve().
  simt::atomic_ref<std::uint64_t, simt::scope::system>(credit_[0]).store(consumed_, simt::release);
  return true;
}

}  // namespace grosr::queue
