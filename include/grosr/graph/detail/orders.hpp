// Orders from the host to a leader. Who has done with one waits a moment for the next, so that no
// task needs to begin for it.
//
//   host     lays an order down, with a number that is one more than the last one's       (O1)
//   leader   sees the number, and carries the order out                                   (O2)
//            when all of it is done, and seen by everybody, says so by its number         (O3)
//   host     waits for that (O4); or for the leader's end, after which it sends another
//            leader with the same order
#pragma once

#include <cstring>

#include "grosr/simt/atomic.hpp"

namespace grosr::graphs {

/// Pinned memory; zeroed before the first order.
struct order_box {
  simt::bus_word order;  ///< and its number, in w[3]
  alignas(128) std::uint32_t served;
};

/// How long leaders wait for an order, and members for a step: less than the runtime stays on the
/// GPU without work; on the host, where others need the processors, a moment.
GROSR_DEVICE constexpr std::uint64_t crew_patience_ns() {
  return simt::on_gpu() ? 10'000'000 : 200'000;
}

template <class Order>
simt::bus_word pack_order(const Order& order, std::uint32_t number) {
  static_assert(sizeof(Order) <= 3 * sizeof(std::uint32_t));
  simt::bus_word w{{0, 0, 0, number}};
  std::memcpy(w.w, &order, sizeof(Order));
  return w;
}

template <class Order>
GROSR_DEVICE Order unpack_order(const simt::bus_word& w) {
  Order order;
  __builtin_memcpy(&order, w.w, sizeof(Order));
  return order;
}

}  // namespace grosr::graphs
