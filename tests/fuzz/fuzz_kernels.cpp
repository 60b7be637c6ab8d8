// The fuzzer's kernel: who calls what, and what is looked at when a call has ended. For host:N:
// nvcc would take too long for so many instances of calls, so this is no *_device.cpp.
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "fuzz/fuzz_calls.hpp"
#include "grosr/simt/shared.hpp"

namespace grosr::tool::fuzz {
namespace {

enum wrong : std::uint32_t {
  right,
  out_of_range,
  too_many_bytes,
  got_outside,
  other_result,
  other_bytes,
  secret_bytes,
};

struct fuzz_kernel {
  world w;
  sys::server_ref sys;

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
    step& s = begin(who, call);
    const long result = make(c, call);
    s.result = result;
    judge(d, who, call, result);
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
      s = &begin(who, place);
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
      judge(d, who, call, result);
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
      s = &begin(who, place);
    }
    simt::sync_block();
    const drawn call = place;
    const long result = make(c, call);
    if (simt::thread_id() == 0) {
      s->result = result;
      judge(d, who, call, result);
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
      s = &begin(who, place);
    }
    simt::sync_block();
    const drawn call = place;
    const long result = make(c, call);
    if (simt::thread_id() == 0) {
      s->result = result;
      judge(d, who, call, result);
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
    if (leads) s = &begin(who, note);
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
        fault(other_result, note, wrote);
      else if (wrote == static_cast<long>(n) && read != wrote && !may_fail(read) && read < 65536)
        fault(other_result, note, read);
      count(w.out->checked);
    }
    if (wrote == static_cast<long>(n) && read > 0)
      for (long i = simt::lane_id(); i < read; i += 32)
        if (bytes[i] != byte_at(key, static_cast<std::uint64_t>(i))) {
          fault(other_bytes, note, i);
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

struct place_counter {
  sys::server_ref sys;
  std::uint64_t* taken;
  GROSR_DEVICE void operator()() const {
    const sys::view& v = sys.where();
    const std::uint32_t self = simt::block_id() * simt::block_size() + simt::thread_id();
    const std::uint32_t all = simt::grid_size() * simt::block_size();
    for (std::uint32_t word = self; word < v.slots.words(); word += all) sys::reclaim(v, word);
    simt::sync_block();
    std::uint64_t found = 0;
    const auto look = [&](const std::uint32_t* words, std::uint32_t count) {
      for (std::uint32_t i = self; i < count; i += all)
        found +=
            simt::popcount(simt::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(words[i]))
                               .load(simt::acquire));
    };
    // Words of slots, then detached ones, then chunks: see sys/detail/layout.hpp. Only the first
    // block looks, after it has reclaimed.
    look(v.detached - v.slots.words(), v.slots.words());
    const std::uint32_t* chunks = v.detached + v.slots.words();
    std::uint32_t words = 0;
    for (const auto& c : v.chunks) words += c.words();
    look(chunks, words);
    if (found != 0) simt::atomic_ref<std::uint64_t>(*taken).fetch_add(found, simt::relaxed);
  }
};

}  // namespace

long throwing_handler::operator()(int what) const {
  if (what == 0) throw std::system_error(EBUSY, std::generic_category());
  throw 7;
}

struct traffic::state {
  state(const device& d, const grounds& from) : g(from), stream(d) {}
  grounds g;
  world w{};
  simt::stream stream;
  simt::buffer<lane_memory> lanes;
  simt::buffer<std::uint32_t> held, ports;
  simt::buffer<drawn> agreed;
  simt::buffer<unsigned char> warp_bytes, checked_bytes, shared;
  simt::buffer<char> paths;
  simt::buffer<raw_call> raw;
  simt::buffer<int> files, strangers;
  simt::buffer<lane_steps> steps;
  simt::buffer<std::uint32_t> quit;
  simt::buffer<outcome> out;
  simt::buffer<sys::grid_point> points;
};

namespace {

template <class T>
simt::buffer<T> filled(const device& d, const std::vector<T>& from) {
  simt::buffer<T> to(d, simt::space::device, std::max<std::size_t>(from.size(), 1));
  if (!from.empty()) to.copy_from(from);
  return to;
}

}  // namespace

traffic::traffic(const device& d, const grounds& g, const path_list& list)
    : state_(std::make_unique<state>(d, g)) {
  state& s = *state_;
  const auto here = simt::space::device;
  const std::size_t lanes = std::size_t{g.grid.blocks} * g.grid.threads, warps = lanes / 32;
  s.lanes = simt::buffer<lane_memory>(d, here, lanes);
  s.held = filled(d, std::vector<std::uint32_t>(held_a_block * g.grid.blocks, none));
  s.ports = simt::buffer<std::uint32_t>(d, here, listened);
  s.agreed = simt::buffer<drawn>(d, here, 2 * warps + g.grid.blocks);
  s.warp_bytes = simt::buffer<unsigned char>(d, here, warps * warp_room);
  s.checked_bytes = simt::buffer<unsigned char>(d, here, warps * warp_room);
  s.raw = filled(d, raw_calls());
  s.files = filled(d, g.files);
  s.strangers = filled(d, g.strangers);
  s.steps = simt::buffer<lane_steps>(d, simt::space::pinned, lanes + 1);
  s.quit = simt::buffer<std::uint32_t>(d, simt::space::pinned, 1);
  s.out = simt::buffer<outcome>(d, here, 1);
  s.points = simt::buffer<sys::grid_point>(d, here, g.phases);
  std::vector<char> text;
  for (const auto* part : {&list.inside, &list.strange, &list.outside})
    for (const std::string& one : *part) {
      text.insert(text.end(), one.begin(), one.begin() + std::min<long>(one.size(), path_room));
      text.resize((text.size() + path_room - 1) / path_room * path_room);
      if (one.empty()) text.resize(text.size() + path_room);
    }
  s.paths = filled(d, text);
  s.shared = simt::buffer<unsigned char>(d, simt::space::pinned, shared_room + text.size());
  std::memcpy(s.shared.data(), text.data(), text.size());

  world& w = s.w;
  w.seed = g.seed;
  w.canary = g.canary;
  w.phases = g.phases;
  w.hostile = g.hostile;
  w.in_place = g.in_place;
  w.denied = g.denied;
  w.lanes = s.lanes.data();
  w.held = s.held.data();
  w.agreed = s.agreed.data();
  w.warp_bytes = s.warp_bytes.data();
  w.checked_bytes = s.checked_bytes.data();
  w.shared_paths = reinterpret_cast<const char*>(s.shared.data());
  w.shared = s.shared.data() + text.size();
  w.paths = s.paths.data();
  w.inside = static_cast<std::uint32_t>(list.inside.size());
  w.strange = static_cast<std::uint32_t>(list.strange.size());
  w.outside = static_cast<std::uint32_t>(list.outside.size());
  w.raw = s.raw.data();
  w.raws = static_cast<std::uint32_t>(s.raw.size());
  w.files = g.files.size() < warps ? nullptr : s.files.data();
  w.strangers = s.strangers.data();
  w.strangers_count = static_cast<std::uint32_t>(g.strangers.size());
  w.foreign_count = static_cast<std::uint32_t>(std::min<std::size_t>(g.foreign.size(), 8));
  std::copy_n(g.foreign.begin(), w.foreign_count, w.foreign);
  w.tcp_name_port = htons(g.tcp_port);
  w.udp_name_port = htons(g.udp_port);
  w.ports = s.ports.data();
  w.steps = s.steps.data();
  w.quit = s.quit.data();
  w.out = s.out.data();
  w.points = s.points.data();
}

traffic::~traffic() = default;

std::span<std::byte> traffic::shared_bytes() const {
  return std::as_writable_bytes(std::span(state_->shared.data(), state_->shared.size()));
}

void traffic::start(const sys::server& s) {
  simt::launch(state_->stream, state_->g.grid, fuzz_kernel{state_->w, s.ref()});
}

bool traffic::done() const { return state_->stream.done(); }

void traffic::quit() {
  simt::atomic_ref<std::uint32_t, simt::scope::system>(state_->quit[0]).store(1, simt::release);
}

outcome traffic::result() const {
  outcome o{};
  state_->out.copy_to({&o, 1});
  return o;
}

std::span<const lane_steps> traffic::steps() const {
  return {state_->steps.data(), state_->steps.size()};
}

std::uint64_t traffic::places_taken(const device& d, const sys::server& s) {
  simt::buffer<std::uint64_t> taken(d, simt::space::device, 1);
  simt::run(d, {1, 1024}, place_counter{s.ref(), taken.data()});
  std::uint64_t n = 0;
  taken.copy_to({&n, 1});
  return n;
}

}  // namespace grosr::tool::fuzz
