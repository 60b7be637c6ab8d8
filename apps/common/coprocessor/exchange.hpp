// Updates of ranks whose kernels cannot send: the host exchanges buffers (the coprocessor model).
// In an exchange each rank's kernel puts updates into a buffer for each other rank, until it has
// done all or a buffer is full. Then a kernel of each other rank applies what is in them, while the
// first kernels fill buffers for the next exchange. The ranks lie on one device, so that buffers
// are read where they are; between devices the host would copy them first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "coprocessor/outbox.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr::coprocessor {

/// Fills the buffers of a rank. Work says what is to be done, for each thread in items:
///   struct position;                      where a thread stands, trivially copyable
///   position begin(thread, threads) const;
///   bool ended(const position&) const;    whether it has done all
///   std::uint32_t look(position&) const;  the rank that its item is for
///   update get(const position&, j) const; update j of the item, of as many as the outbox says
///   void advance(position&, threads) const;
template <class Work>
struct collect {
  Work work;
  outbox out;
  typename Work::position* positions;  ///< of threads, where they stopped
  std::uint64_t* own;                  ///< what updates of this rank change
  std::uint32_t* left;                 ///< in host memory: is set to 1 where something is left
  std::uint32_t* next_filled;          ///< of all ranks: is set to zero for the next exchange
  std::uint32_t first;                 ///< whether this is the first exchange

  GROSR_DEVICE void operator()() const {
    const std::uint32_t threads = simt::grid_size() * simt::block_size(),
                        thread = simt::block_id() * simt::block_size() + simt::thread_id();
    for (std::uint32_t r = thread; r < out.ranks; r += threads) next_filled[r] = 0;
    typename Work::position at = first != 0 ? work.begin(thread, threads) : positions[thread];
    bool goes_on = !work.ended(at);
    GROSR_NO_UNROLL
    for (;;) {
      const std::uint32_t to = goes_on ? work.look(at) : out.self, place = out.reserve(goes_on, to);
      if (place == outbox::nobody) break;
      if (goes_on) {
        goes_on = put(at, to, place);
        if (goes_on) {
          work.advance(at, threads);
          goes_on = !work.ended(at);
        }
      }
    }
    positions[thread] = at;
    const bool some_left = simt::any(simt::full_mask, !work.ended(at));
    if (simt::lane_id() == 0 && some_left)
      simt::atomic_ref<std::uint32_t, simt::scope::system>(*left).store(1, simt::relaxed);
  }

 private:
  /// Whether there was room.
  GROSR_DEVICE bool put(const typename Work::position& at, std::uint32_t to,
                        std::uint32_t place) const {
    if (to != out.self && place >= out.room) return false;
    for (std::uint32_t j = 0; j < out.width; ++j) {
      if (to == out.self)
        apply_update(own, work.get(at, j));
      else
        out.at(to, place, j) = work.get(at, j);
    }
    return true;
  }
};

/// Applies all updates for a rank: those of buffers whose ranks come one after the other.
struct apply {
  outbox first;  ///< that of rank 0
  std::uint32_t to;
  std::uint64_t* own;

  GROSR_DEVICE void operator()() const {
    const std::uint32_t threads = simt::grid_size() * simt::block_size(),
                        places = first.ranks * first.room;
    GROSR_NO_UNROLL
    for (std::uint32_t i = simt::block_id() * simt::block_size() + simt::thread_id(); i < places;
         i += threads) {
      const outbox from = first.of_rank(i / first.room);
      const std::uint32_t place = i % first.room;
      if (place >= from.filled[to]) continue;
      for (std::uint32_t j = 0; j < from.width; ++j) apply_update(own, from.at(to, place, j));
    }
  }
};

/// What a rank has to do, and the numbers that updates of its part change.
template <class Work>
struct assignment {
  Work work;
  std::uint64_t* own;
};

template <class Work>
class exchanger {
 public:
  /// `grid`: of a rank's kernels. An item has `width` updates, and a buffer room for one at least.
  exchanger(device where, std::uint32_t ranks, simt::shape grid, std::uint32_t width,
            std::size_t buffer_bytes)
      : ranks_(ranks),
        width_(width),
        room_(static_cast<std::uint32_t>(
            std::max<std::size_t>(buffer_bytes / (sizeof(update) * width), 1))),
        grid_(grid),
        collect_grid_{blocks_for(std::uint64_t{room_} * (ranks - 1)), grid.threads},
        updates_(where, simt::space::device, std::size_t{sets} * ranks * ranks * room_ * width),
        filled_(where, simt::space::device, std::size_t{counters} * ranks * ranks),
        positions_(where, simt::space::device,
                   std::size_t{ranks} * collect_grid_.blocks * grid.threads),
        left_(where, simt::space::pinned, ranks) {
    for (std::uint32_t r = 0; r < ranks; ++r) {
      collects_.emplace_back(where);
      applies_.emplace_back(where);
    }
  }

  /// Does the work of all ranks, and returns in how many exchanges.
  std::uint64_t run(const std::vector<assignment<Work>>& all) {
    const std::uint64_t begin = exchanges_;
    for (bool more = true; more;) {
      for (std::uint32_t r = 0; r < ranks_; ++r) {
        left_[r] = 0;
        simt::launch<256>(collects_[r], collect_grid_, collecting(r, all[r], exchanges_ == begin));
      }
      if (exchanges_ != begin) launch_applies(all);
      wait_all();
      more = false;
      for (std::uint32_t r = 0; r < ranks_; ++r) more = more || left_[r] != 0;
      ++exchanges_;
    }
    launch_applies(all);
    wait_all();
    return exchanges_ - begin;
  }

 private:
  // Buffers are filled in one exchange and applied during the next one. Their counters are set to
  // zero during the one after that.
  static constexpr std::uint32_t sets = 2, counters = 3;

  /// No more threads than have something to do while buffers fill.
  unsigned blocks_for(std::uint64_t items) const {
    if (ranks_ == 1) return grid_.blocks;
    return static_cast<unsigned>(
        std::clamp<std::uint64_t>((items + grid_.threads - 1) / grid_.threads, 1, grid_.blocks));
  }

  std::uint32_t* filled_of(std::uint64_t number) const {
    return filled_.data() + number % counters * ranks_ * ranks_;
  }
  outbox first_outbox(std::uint64_t number) const {
    return {updates_.data() + number % sets * ranks_ * ranks_ * room_ * width_,
            filled_of(number),
            0,
            ranks_,
            room_,
            width_};
  }

  collect<Work> collecting(std::uint32_t rank, const assignment<Work>& a, bool first) const {
    return {a.work,
            first_outbox(exchanges_).of_rank(rank),
            positions_.data() + std::size_t{rank} * collect_grid_.blocks * grid_.threads,
            a.own,
            left_.data() + rank,
            filled_of(exchanges_ + 1) + rank * ranks_,
            first ? 1u : 0u};
  }

  /// Of what the last exchange put into buffers.
  void launch_applies(const std::vector<assignment<Work>>& all) {
    for (std::uint32_t r = 0; r < ranks_ && ranks_ > 1; ++r)
      simt::launch<256>(applies_[r], grid_, apply{first_outbox(exchanges_ - 1), r, all[r].own});
  }

  void wait_all() const {
    for (const simt::stream& s : collects_) s.wait();
    for (const simt::stream& s : applies_) s.wait();
  }

  std::uint32_t ranks_, width_, room_;
  simt::shape grid_, collect_grid_;
  simt::buffer<update> updates_;
  simt::buffer<std::uint32_t> filled_;
  simt::buffer<typename Work::position> positions_;
  simt::buffer<std::uint32_t> left_;
  std::vector<simt::stream> collects_, applies_;
  std::uint64_t exchanges_ = 0;
};

}  // namespace grosr::coprocessor
