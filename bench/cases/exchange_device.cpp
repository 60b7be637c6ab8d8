#include "cases/exchange.hpp"

#include <chrono>
#include <vector>

#include "grosr/simt/launch.hpp"

namespace grosr::channels {
namespace {

constexpr unsigned block_size = 128;

template <element_layout L>
struct parcel {
  static constexpr grosr::element_layout layout = L;
  std::uint32_t word[8];
};

struct tally {
  std::uint64_t served, sum, torn;
};

template <element_layout L>
struct exchange_kernel {
  queue::batch_buffer_ref<parcel<L>> channel;
  tally* all;
  std::uint32_t steps;
  reserve_by by;

  GROSR_DEVICE void operator()() const {
    const unsigned lane = simt::lane_id();
    const std::uint32_t thread = simt::block_id() * simt::block_size() + simt::thread_id();
    tally mine{};
    GROSR_NO_UNROLL
    for (std::uint32_t step = 0; step < steps; ++step) {
      const std::uint32_t due = simt::ballot(simt::full_mask, push(thread * steps + step) != 0);
      GROSR_NO_UNROLL
      for (unsigned n = simt::popcount(due); n != 0; --n) serve(lane, mine);
    }
    simt::atomic_ref<std::uint64_t>(all->served).fetch_add(mine.served, simt::relaxed);
    simt::atomic_ref<std::uint64_t>(all->sum).fetch_add(mine.sum, simt::relaxed);
    simt::atomic_ref<std::uint64_t>(all->torn).fetch_add(mine.torn, simt::relaxed);
  }

  GROSR_DEVICE std::uint32_t push(std::uint32_t number) const {
    const std::uint32_t mask = by == reserve_by::warp ? simt::full_mask : 1u << simt::lane_id();
    std::uint64_t ticket = queue::no_ticket;
    simt::wait_until([&] { return (ticket = channel.talloc(mask)) != queue::no_ticket; },
                     simt::forever, nullptr, "room in the channel");
    parcel<L> p;
    for (unsigned i = 0; i < 8; ++i) p.word[i] = number + i;
    channel.store(channel.place_of(ticket), p);
    return channel.enq(mask, ticket);
  }

  GROSR_DEVICE void serve(unsigned lane, tally& mine) const {
    std::uint64_t first = lane == 0 ? channel.deq() : 0;
    first = simt::shuffle(simt::full_mask, first, 0);
    const std::uint32_t place = channel.take(first + lane);
    const parcel<L> p = channel.load(place);
    channel.tfree(by == reserve_by::warp ? simt::full_mask : 1u << lane, place);
    ++mine.served;
    mine.sum += p.word[0];
    for (unsigned i = 1; i < 8; ++i) mine.torn += p.word[i] != p.word[0] + i ? 1 : 0;
  }
};

template <element_layout L>
exchange_result exchange_in(const device& d, unsigned blocks, std::uint32_t steps,
                            std::uint32_t capacity, reserve_by by) {
  const queue::batch_buffer memory(d, {.capacity = capacity, .batch = 32},
                                   queue::element_bytes<parcel<L>>);
  simt::buffer<tally> all(d, simt::space::device, 1);
  all.copy_from(std::vector<tally>(1));
  const exchange_kernel<L> k{queue::batch_buffer_ref<parcel<L>>(memory.state()), all.data(), steps,
                             by};
  const auto began = std::chrono::steady_clock::now();
  simt::run(d, {blocks, block_size}, k);
  exchange_result r;
  r.us =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count();
  std::vector<tally> got(1);
  all.copy_to(got);
  const queue::batch_buffer_state end = memory.look();
  const std::uint64_t pushed = std::uint64_t{blocks} * block_size * steps;
  r.served = got[0].served;
  r.left = end.ready - end.head;
  r.right = r.served + r.left == pushed && r.left == 0 && got[0].torn == 0 &&
            got[0].sum == pushed * (pushed - 1) / 2;
  return r;
}

}  // namespace

exchange_result exchange(const device& d, unsigned blocks, std::uint32_t steps,
                         std::uint32_t capacity, element_layout l, reserve_by by) {
  return l == element_layout::rows
             ? exchange_in<element_layout::rows>(d, blocks, steps, capacity, by)
             : exchange_in<element_layout::columns>(d, blocks, steps, capacity, by);
}

}  // namespace grosr::channels
