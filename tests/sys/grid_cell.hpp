// A cell of the grid granularity x blocking x ordering x call family: calls of one kind, made by
// one kind of group in one way. Every call has a number, and bytes of its own.
#pragma once

#include <sys/mman.h>
#include <time.h>

#include "grosr/simt/wait.hpp"
#include "support/scramble.hpp"
#include "sys/calls.hpp"

namespace grosr::sys::grid {

enum class by {
  lane,
  diverged,
  warp,
  mask,
  strong,
  producer,
  consumer,
  grid_producer,
  grid_consumer
};
enum class blocking { blocks, waits, tests, drops };
enum class family {
  append,  // write where the descriptor stands
  put,     // pwrite
  send,
  next,  // read where the descriptor stands
  get,   // pread
  receive,
  map,
  advise,
  unmap,
  clock,
  handle,
  print,
  nothing
};

constexpr std::uint16_t handler_number = 9;
constexpr unsigned at_once = 2;  // started calls of a group in flight

/// What one kernel calls.
struct work {
  server_ref sys{nullptr};
  family what = family::nothing;
  blocking how = blocking::blocks;
  unsigned turns = 0;  // calls of a group
  std::uint32_t seed = 0;
  int file = -1;
  std::uint32_t bytes = 0, stride = 0;  // call n has `bytes` at n * stride
  unsigned char *from = nullptr, *to = nullptr;
  std::uint64_t* addresses = nullptr;
  timespec* times = nullptr;
  grid_point* points = nullptr;     // by turn
  std::int64_t* results = nullptr;  // by turn, then thread
};

template <by Who, bool Started, bool Attempts>
struct cell {
  work w;

  GROSR_DEVICE void operator()() const {
    if constexpr (Who == by::diverged) {
      GROSR_NO_UNROLL
      for (unsigned part = 0; part < 3; ++part)
        if (testing::scramble(w.seed + simt::thread_id()) % 3 == part) play();
    } else {
      play();
    }
  }

 private:
  GROSR_DEVICE auto caller_of(unsigned turn) const {
    const auto plain = [&] {
      if constexpr (Who == by::lane || Who == by::diverged)
        return w.sys.lane();
      else if constexpr (Who == by::warp)
        return w.sys.warp();
      else if constexpr (Who == by::mask)
        return w.sys.warp(0x55555555u << simt::lane_id() % 2);
      else if constexpr (Who == by::strong)
        return w.sys.block();
      else if constexpr (Who == by::producer)
        return w.sys.block(sys::producer);
      else if constexpr (Who == by::consumer)
        return w.sys.block(sys::consumer);
      else if constexpr (Who == by::grid_producer)
        return w.sys.grid(sys::producer, w.points + turn);
      else
        return w.sys.grid(sys::consumer, w.points + turn);
    }();
    const auto waiting = [&] {
      if constexpr (Attempts)
        return plain.attempt();
      else
        return plain;
    }();
    if constexpr (Started)
      return waiting.start();
    else
      return waiting;
  }

  GROSR_DEVICE static std::uint32_t self() {
    return simt::block_id() * simt::block_size() + simt::thread_id();
  }
  GROSR_DEVICE static std::uint32_t group() {
    if constexpr (Who == by::lane || Who == by::diverged)
      return self();
    else if constexpr (Who == by::warp)
      return self() / 32;
    else if constexpr (Who == by::mask)
      return self() / 32 * 2 + simt::lane_id() % 2;
    else if constexpr (Who == by::grid_producer || Who == by::grid_consumer)
      return 0;
    else
      return simt::block_id();
  }
  GROSR_DEVICE void note(unsigned turn, long result) const {
    w.results[turn * simt::grid_size() * simt::block_size() + self()] = result;
  }
  GROSR_DEVICE void idle(unsigned turn) const {
    const unsigned n = testing::scramble(w.seed + 1000 * turn + self()) % 4;
    for (unsigned i = 0; i < n; ++i) simt::pause(0, "nothing");
  }

  template <class Caller, class Token>
  GROSR_DEVICE long end(const Caller& c, Token& t) const {
    if (w.how == blocking::drops) return drop(c, t);
    if (w.how == blocking::tests)
      for (unsigned turn = 0; !test(c, t); ++turn) simt::pause(turn, "a token");
    return wait(c, t);
  }

  /// All turns; make(caller, n) makes call n.
  template <class Make>
  GROSR_DEVICE void take_turns(const Make& make) const {
    using made = decltype(make(caller_of(0), 0u));
    GROSR_NO_UNROLL
    for (unsigned first = 0; first < w.turns; first += at_once) {
      idle(first);
      [[maybe_unused]] made held[at_once];
      GROSR_NO_UNROLL
      for (unsigned turn = first; turn < first + at_once; ++turn) {
        auto one = make(caller_of(turn), group() * w.turns + turn);
        if constexpr (std::is_same_v<made, long>)
          note(turn, one);
        else
          held[turn - first] = one;
      }
      if constexpr (!std::is_same_v<made, long>) {
        idle(first + 1);
        GROSR_NO_UNROLL
        for (unsigned turn = first + at_once; turn-- > first;)
          note(turn, end(caller_of(turn), held[turn - first]));
      }
    }
  }

  /// read, write and their kin, as the wrappers make them.
  GROSR_DEVICE auto bytes_of(unsigned n) const {
    constexpr long number[] = {SYS_write, SYS_pwrite64, SYS_sendto,
                               SYS_read,  SYS_pread64,  SYS_recvfrom};
    const bool out = w.what <= family::send;
    unsigned char* const at = (out ? w.from : w.to) + std::size_t{n} * w.stride;
    const bool placed = w.what == family::put || w.what == family::get;
    auto o = detail::make<1, bulk::bytes>(number[static_cast<unsigned>(w.what)], w.file, at,
                                          w.bytes, placed ? std::uint64_t{n} * w.stride : 0, 0, 0);
    o.part_of[0] = out ? detail::bytes_to(1, at, w.bytes)
                       : detail::bytes_from(1, at, w.bytes, travel::by_result);
    return o;
  }
  GROSR_DEVICE auto words_of(unsigned n) const {
    if (w.what == family::map)
      return detail::make<0>(SYS_mmap, 0, w.bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (w.what == family::advise)
      return detail::make<0>(SYS_madvise, w.addresses[n], w.bytes, MADV_DONTNEED);
    if (w.what == family::unmap) return detail::make<0>(SYS_munmap, w.addresses[n], w.bytes);
    if (w.what == family::handle) return detail::make<0>(handler_base + handler_number, n, w.seed);
    return detail::make<0>(call_nothing);
  }

  GROSR_DEVICE void play() const {
    if (w.what <= family::receive)
      take_turns([&](const auto& c, unsigned n) { return invoke(c, bytes_of(n)); });
    else if (w.what == family::clock)
      take_turns([&](const auto& c, unsigned n) {
        return clock_gettime(c, CLOCK_MONOTONIC, w.times + n);
      });
    else if (w.what == family::print)
      take_turns([&](const auto& c, unsigned n) { return sys::print(c, "{} of {}\n", n, w.seed); });
    else
      take_turns([&](const auto& c, unsigned n) { return invoke(c, words_of(n)); });
  }
};

template <by Who>
void launch(device d, simt::shape s, const work& w, bool attempts) {
  if (w.how == blocking::blocks)
    attempts ? simt::run(d, s, cell<Who, false, true>{w})
             : simt::run(d, s, cell<Who, false, false>{w});
  else
    attempts ? simt::run(d, s, cell<Who, true, true>{w})
             : simt::run(d, s, cell<Who, true, false>{w});
}

}  // namespace grosr::sys::grid
