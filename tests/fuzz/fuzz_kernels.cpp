// The fuzzer's kernel: who calls what. For host:N: nvcc would take too long for so many instances
// of calls, so this is no *_device.cpp.
#include "fuzz/fuzz_kernels.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "fuzz/fuzz_calls.hpp"
#include "fuzz/fuzz_judge.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::tool::fuzz {
namespace {

struct fuzz_kernel {
  world w;
  sys::server_ref sys;

  GROSR_DEVICE call_judge notes() const { return {w, sys}; }
  GROSR_DEVICE std::uint32_t lane() const { return notes().lane(); }

  template <class Caller>
  GROSR_DEVICE drawn draw(dice& d, bool big) const {
    lane_memory* m = &w.lanes[lane()];
    drawer from(w, d, sys.where(), m, big);
    drawn c = from.call();
    if (!makes_all<Caller> && !is_of_few(c.what)) {
      c.outside = c.outside && c.what == op::open;
      c.what = c.what == op::open ? op::openat : op::nothing;
    }
    // What is closed is nobody's then, mostly.
    if (c.what == op::close && !d.chance(8)) {
      std::uint32_t& place = w.held[simt::block_id() * held_a_block + d.below(held_a_block)];
      c.fd = static_cast<int>(simt::atomic_ref<std::uint32_t>(place).exchange(none, simt::relaxed));
      m->stale = static_cast<std::uint32_t>(c.fd);
    }
    return c;
  }

  template <class Caller>
  GROSR_DEVICE void by_lane(const Caller& c, form who, dice& d) const {
    const drawn call = draw<Caller>(d, d.chance(16));
    step& s = notes().begin(who, call);
    const long result = make(c, call);
    s.result = result;
    notes().judge(d, who, call, result);
  }

  /// Lanes of c.mask(). The others may have other arguments.
  template <class Caller>
  GROSR_DEVICE void by_warp(const Caller& c, form who, dice d) const {
    const std::uint32_t mask = c.mask();
    const bool leads = simt::lane_id() == simt::lowest_bit(mask);
    const std::uint32_t warp = lane() / 32;
    // Two groups of a warp have places of their own.
    drawn& place = w.agreed[2 * warp + (mask & 1)];
    step* s = nullptr;
    if (leads) {
      place = draw<Caller>(d, true);
      s = &notes().begin(who, place);
    }
    simt::sync_warp(mask);
    drawn call = place;
    if (!leads && call.mode % 4 == 3 && call.what != op::print) {
      call.fd = -1;
      call.flags = 77;
      call.offset = -77;
    }
    const long result = make(c, call);
    if (leads) {
      s->result = result;
      notes().judge(d, who, call, result);
    }
    simt::sync_warp(mask);
  }

  template <class Caller>
  GROSR_DEVICE void by_block(const Caller& c, form who, dice d) const {
    const std::uint32_t warps = simt::grid_size() * (simt::block_size() / 32);
    drawn& place = w.agreed[2 * warps + simt::block_id()];
    step* s = nullptr;
    if (simt::thread_id() == 0) {
      place = draw<Caller>(d, true);
      s = &notes().begin(who, place);
    }
    simt::sync_block();
    const drawn call = place;
    const long result = make(c, call);
    if (simt::thread_id() == 0) {
      s->result = result;
      notes().judge(d, who, call, result);
    }
    simt::sync_block();
  }

  /// All blocks make the same call, with arguments of their own.
  template <class Caller>
  GROSR_DEVICE void by_grid(const Caller& c, form who, dice d, dice all) const {
    const std::uint32_t warps = simt::grid_size() * (simt::block_size() / 32);
    drawn& place = w.agreed[2 * warps + simt::block_id()];
    const op some[] = {op::nothing, op::add, op::openat, op::pread,
                       op::pwrite,  op::raw, op::poll,   op::recvfrom};
    step* s = nullptr;
    if (simt::thread_id() == 0) {
      place = draw<Caller>(d, true);
      place.what = some[all.below(8)];
      place.how = static_cast<fate>(all.below(3));
      place.bytes = place.what == op::poll ? all.below(8) : all.chance(4) ? 70000 : all.below(1000);
      if (place.what == op::raw) place.number = SYS_getppid;
      place.outside = false;
      place.offset = 1;
      place.a[0] = all.next();
      place.a[1] = 7;
      place.flags = 0;
      s = &notes().begin(who, place);
    }
    simt::sync_block();
    const drawn call = place;
    const long result = make(c, call);
    if (simt::thread_id() == 0) {
      s->result = result;
      notes().judge(d, who, call, result);
    }
    simt::sync_block();
  }

  GROSR_DEVICE static unsigned char byte_at(std::uint64_t key, std::uint64_t i) {
    return static_cast<unsigned char>(dice::mixed(key + i / 8) >> (i % 8 * 8));
  }

  /// Writes to the warp's own file, reads it again, and finds what it wrote.
  template <class Caller>
  GROSR_DEVICE GROSR_NOINLINE void check_file(const Caller& c, form who, dice d) const {
    const std::uint32_t warp = lane() / 32;
    unsigned char* bytes = w.checked_bytes + std::size_t{warp} * warp_room + d.below(17);
    const std::uint32_t n = d.chance(2) ? 1 + d.below(300) : 1 + d.below(warp_room - 64);
    const std::int64_t at = d.below(1 << 20);
    const std::uint64_t key = d.next();
    const bool leads = simt::lane_id() == 0;
    step* s = nullptr;
    drawn note{};
    note.what = op::check;
    note.fd = w.files[warp];
    note.bytes = n;
    note.offset = at;
    if (leads) s = &notes().begin(who, note);
    for (std::uint32_t i = simt::lane_id(); i < n; i += 32) bytes[i] = byte_at(key, i);
    simt::sync_warp();
    const long wrote = sys::pwrite(c, w.files[warp], bytes, n, at);
    for (std::uint32_t i = simt::lane_id(); i < n; i += 32) bytes[i] = 0;
    simt::sync_warp();
    const long read = wrote < 0 ? wrote : sys::pread(c, w.files[warp], bytes, n, at);
    if (leads) {
      s->result = read;
      const auto may_fail = [](long r) { return r == -EAGAIN || r == -ESHUTDOWN; };
      // A call of several pieces may be cut short at the end of the server.
      if (wrote != static_cast<long>(n) && !may_fail(wrote) && wrote < 65536)
        notes().fault(other_result, note, wrote);
      else if (wrote == static_cast<long>(n) && read != wrote && !may_fail(read) && read < 65536)
        notes().fault(other_result, note, read);
      notes().count(w.out->checked);
    }
    if (wrote == static_cast<long>(n) && read > 0)
      for (long i = simt::lane_id(); i < read; i += 32)
        if (bytes[i] != byte_at(key, static_cast<std::uint64_t>(i))) {
          notes().fault(other_bytes, note, i);
          break;
        }
    simt::sync_warp();
  }

  GROSR_DEVICE GROSR_NOINLINE void lanes_turn(dice lane_dice) const {
    switch (lane_dice.below(8)) {
      case 0:
      case 1:
        return by_lane(sys.lane().start(), form::lane_started, lane_dice);
      case 2:
        return by_lane(sys.lane().attempt(), form::lane_attempt, lane_dice);
      case 3:
        return by_lane(sys.lane().attempt().start(), form::lane_attempt_started, lane_dice);
      default:
        return by_lane(sys.lane(), form::lane, lane_dice);
    }
  }

  GROSR_DEVICE GROSR_NOINLINE void warps_turn(dice d) const {
    switch (d.below(8)) {
      case 0:
      case 1:
        return lanes_turn(dice::of(d.next(), simt::lane_id()));
      case 2:  // some lanes only, while the others do something else
        if ((d.next() >> simt::lane_id() & 1) != 0) lanes_turn(dice::of(d.next(), simt::lane_id()));
        return;
      case 3: {
        const auto mask = static_cast<std::uint32_t>(d.next()) | 1;
        const dice one = dice::of(d.next(), 1), two = dice::of(d.next(), 2);
        if ((mask >> simt::lane_id() & 1) != 0)
          by_warp(sys.warp(mask), form::warp, one);
        else
          by_warp(sys.warp(~mask), form::warp, two);
        return;
      }
      case 4:
        return by_warp(sys.warp().start(), form::warp_started, d);
      case 5:
        return by_warp(sys.warp().attempt(), form::warp_attempt, d);
      case 6:
        if (!w.hostile && w.files != nullptr) return check_file(sys.warp(), form::warp, d);
        [[fallthrough]];
      default:
        return by_warp(sys.warp(), form::warp, d);
    }
  }

  GROSR_DEVICE GROSR_NOINLINE void blocks_turn(dice d) const {
    switch (d.below(6)) {
      case 0:
        return by_block(sys.block(), form::block, d);
      case 1:
        return by_block(sys.block().start(), form::block_started, d);
      case 2:
        return by_block(sys.block(sys::producer), form::block_producer, d);
      case 3:
        return by_block(sys.block(sys::consumer), form::block_consumer, d);
      case 4:
        return by_block(sys.block(sys::consumer).start(), form::block_consumer_started, d);
      default:
        return by_block(sys.block(sys::strong), form::block, d);
    }
  }

  GROSR_DEVICE GROSR_NOINLINE void grids_turn(std::uint32_t phase, dice d, dice all) const {
    sys::grid_point* at = w.points + phase;
    switch (all.below(3)) {
      case 0:
        return by_grid(sys.grid(sys::producer, at), form::grid_producer, d, all);
      case 1:
        return by_grid(sys.grid(sys::consumer, at), form::grid_consumer, d, all);
      default:
        return by_grid(sys.grid(sys::producer, at).start(), form::grid_started, d, all);
    }
  }

  GROSR_DEVICE void operator()() const {
    struct told {
      std::uint32_t quit;
    };
    told& t = simt::block_shared<told>();
    const std::uint32_t warp = lane() / 32;
    for (std::uint32_t phase = 0; phase < w.phases; ++phase) {
      simt::sync_block();
      if (simt::thread_id() == 0)
        t.quit = simt::atomic_ref<std::uint32_t, simt::scope::system>(
                     const_cast<std::uint32_t&>(*w.quit))
                     .load(simt::relaxed);
      simt::sync_block();
      if (t.quit != 0) break;
      dice all = dice::of(w.seed, phase);
      dice mine = dice::of(w.seed, phase, 1000 + simt::block_id());
      if (all.chance(8)) {
        grids_turn(phase, mine, all);
      } else if (mine.chance(4)) {
        blocks_turn(mine);
      } else {
        for (std::uint32_t turn = 0; turn < 8; ++turn) {
          warps_turn(dice::of(w.seed + turn, phase, 1000000 + warp));
          simt::sync_warp();
        }
      }
    }
    simt::sync_block();
    // What is held is given back, so that what is left belongs to nobody.
    lane_memory& m = w.lanes[lane()];
    if (m.mapped != 0) sys::munmap(sys, reinterpret_cast<void*>(m.mapped), m.mapped_bytes);
  }
};

}  // namespace

void launch_calls(simt::stream& s, simt::shape grid, const world& w, const sys::server_ref& sys) {
  simt::launch(s, grid, fuzz_kernel{w, sys});
}

}  // namespace grosr::tool::fuzz
