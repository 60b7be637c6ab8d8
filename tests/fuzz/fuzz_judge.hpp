// What the fuzzer's kernel notes of a call, and what is looked at when one has ended.
#pragma once

#include <sys/socket.h>

#include <algorithm>

#include "fuzz/fuzz_draw.hpp"
#include "grosr/sys/files.hpp"
#include "grosr/sys/memory.hpp"
#include "grosr/sys/network.hpp"

namespace grosr::tool::fuzz {

enum wrong : std::uint32_t {
  right,
  out_of_range,
  too_many_bytes,
  got_outside,
  other_result,
  other_bytes,
  secret_bytes,
};

/// Of the lane that uses it.
struct call_judge {
  const world& w;
  const sys::server_ref& sys;

  GROSR_DEVICE std::uint32_t lane() const {
    return simt::block_id() * simt::block_size() + simt::thread_id();
  }
  GROSR_DEVICE void count(std::uint64_t& to) const {
    simt::atomic_ref<std::uint64_t>(to).fetch_add(1, simt::relaxed);
  }

  GROSR_DEVICE GROSR_NOINLINE void fault(wrong kind, const drawn& d, long result) const {
    if (simt::atomic_ref<std::uint64_t>(w.out->wrong).fetch_add(1, simt::relaxed) != 0) return;
    w.out->wrong_kind = kind;
    w.out->wrong_lane = lane();
    w.out->wrong_number = d.what == op::raw ? static_cast<std::uint64_t>(d.number)
                                            : static_cast<std::uint64_t>(d.what) << 32;
    w.out->wrong_result = result;
    w.steps[simt::grid_size() * simt::block_size()] = w.steps[lane()];
  }

  GROSR_DEVICE GROSR_NOINLINE step& begin(form who, const drawn& d) const {
    lane_steps& all = w.steps[lane()];
    const std::uint32_t turn = all.turns + 1;
    step& s = all.at[turn % steps_a_lane];
    s.turn = turn;
    s.what = d.what;
    s.who = who;
    s.how = d.how;
    const bool is_raw = d.what == op::raw || d.what == op::add;
    s.a[0] = is_raw ? static_cast<std::uint64_t>(d.number) : static_cast<std::uint64_t>(d.fd);
    s.a[1] = is_raw ? d.a[0] : static_cast<std::uint64_t>(d.flags);
    s.a[2] = is_raw ? d.a[1] : d.bytes;
    s.a[3] = is_raw ? d.a[2] : static_cast<std::uint64_t>(d.offset);
    s.result = running;
    all.turns = turn;
    return s;
  }

  GROSR_DEVICE bool brings_bytes(op o) const {
    return o == op::pread || o == op::read || o == op::recv || o == op::recvfrom ||
           o == op::getdents || o == op::getrandom || o == op::readv;
  }

  GROSR_DEVICE GROSR_NOINLINE bool holds_secret(const unsigned char* at,
                                                std::uint64_t bytes) const {
    if (bytes > 512) bytes = 512;
    std::uint64_t word = 0;
    for (std::uint64_t i = 0; i < bytes; ++i) {
      word = word >> 8 | std::uint64_t{at[i]} << 56;
      if (i < 7) continue;
      std::uint64_t turned = word;
      for (unsigned k = 0; k < 8; ++k, turned = turned << 8 | turned >> 56)
        if (turned == w.canary) return true;
    }
    return false;
  }

  /// A descriptor goes where others find it; what was there is closed.
  GROSR_DEVICE GROSR_NOINLINE void keep(dice& d, lane_memory& m, std::uint32_t fd) const {
    std::uint32_t& place = w.held[simt::block_id() * held_a_block + d.below(held_a_block)];
    const std::uint32_t old = simt::atomic_ref<std::uint32_t>(place).exchange(fd, simt::relaxed);
    if (old == none) return;
    m.stale = old;
    sys::close(sys, static_cast<int>(old));
  }

  /// One lane of those that made the call looks at what came of it.
  GROSR_DEVICE GROSR_NOINLINE void judge(dice& d, form who, const drawn& c, long result) const {
    count(w.out->calls);
    if (c.what < op::count) count(w.out->by_op[static_cast<unsigned>(c.what)]);
    if (result == -EINPROGRESS && who >= form::grid_producer) return;
    const bool starts = who == form::lane_started || who == form::lane_attempt_started ||
                        who == form::warp_started || who == form::block_started ||
                        who == form::block_consumer_started || who == form::grid_started;
    const bool lost = starts && c.how == fate::drop && c.what != op::print;
    if (lost) {
      count(w.out->waits_lost);
      if (result != 0 && result != -EAGAIN && result != -EFAULT) fault(other_result, c, result);
      return;
    }
    if (result < 0) count(w.out->errors);
    if (result == -EPERM) count(w.out->refused);
    const bool none_made = result == -EAGAIN || result == -ESHUTDOWN;
    const bool is_address = c.what == op::mmap || (c.what == op::raw && c.number == SYS_mmap);
    if (result < -4095 && !is_address && c.what != op::add) fault(out_of_range, c, result);
    if (c.outside && result >= 0) fault(got_outside, c, result);
    if (c.what == op::print && c.marked && result == 0) count(w.out->printed);
    if (brings_bytes(c.what) && result > 0) {
      if (static_cast<std::uint64_t>(result) > c.bytes && (c.flags & MSG_TRUNC) == 0)
        fault(too_many_bytes, c, result);
      else if (holds_secret(c.buffer, std::min(static_cast<std::uint64_t>(result), c.bytes)))
        fault(secret_bytes, c, result);
    }
    const auto must_be = [&](long right_one) {
      count(w.out->checked);
      if (!none_made && result != right_one) fault(other_result, c, result);
    };
    switch (c.what) {
      case op::nothing:
        return must_be(0);
      case op::add:
        return must_be(static_cast<long>(c.a[0] + c.a[1]));
      case op::throws:
        return must_be(-EBUSY);
      case op::throws_other:
        return must_be(-EIO);
      case op::missing:
        return must_be(-ENOSYS);
      case op::raw:
        if (c.number < 0 || c.number >= sys::handler_base) must_be(-ENOSYS);
        break;
      case op::open:
      case op::openat:
      case op::accept:
        if (result >= 0) keep(d, *c.memory, static_cast<std::uint32_t>(result));
        break;
      case op::socket:
        if (result >= 0) {
          // Else most callers would wait for somebody else until the end.
          const timeval limit{0, 20000};
          sys::setsockopt(sys, static_cast<int>(result), SOL_SOCKET, SO_RCVTIMEO, &limit,
                          sizeof limit);
          sys::setsockopt(sys, static_cast<int>(result), SOL_SOCKET, SO_SNDTIMEO, &limit,
                          sizeof limit);
          keep(d, *c.memory, static_cast<std::uint32_t>(result));
        }
        break;
      case op::listen: {
        lane_memory& m = *c.memory;
        m.length = sizeof m.name;
        if (result == 0 && sys::getsockname(sys, c.fd, &m.name, &m.length) == 0)
          w.ports[d.below(listened)] = m.name.sin_port;
        break;
      }
      case op::mmap:
        if (result < 0 && result >= -4095) break;
        if (c.memory->mapped != 0)
          sys::munmap(sys, reinterpret_cast<void*>(c.memory->mapped), c.memory->mapped_bytes);
        c.memory->mapped = static_cast<std::uint64_t>(result);
        c.memory->mapped_bytes = c.bytes;
        break;
      default:
        break;
    }
    if (c.what != op::raw || result < 0) return;
    switch (c.number) {
      case SYS_dup:
      case SYS_eventfd2:
      case SYS_timerfd_create:
      case SYS_epoll_create1:
      case SYS_memfd_create:
      case SYS_openat:
      case SYS_socket:
      case SYS_accept4:
        keep(d, *c.memory, static_cast<std::uint32_t>(result));
        break;
      case SYS_mmap:
        sys::munmap(sys, reinterpret_cast<void*>(result), c.a[1]);
        break;
      default:
        break;
    }
  }
};

}  // namespace grosr::tool::fuzz
