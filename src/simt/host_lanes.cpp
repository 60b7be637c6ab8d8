// The lane vocabulary on the host: collectives, sync_block, polling, block-shared storage.
#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <exception>
#include <thread>

#include "grosr/simt/error.hpp"
#include "grosr/simt/relax.hpp"
#include "simt/host_cpus.hpp"
#include "simt/host_schedule.hpp"

namespace grosr::simt::host {
namespace {

[[noreturn]] void misuse(const lane& l, call kind, std::uint32_t mask, site where,
                         const std::string& what) {
  throw error(errc::misuse,
              fmt::format("block {} warp {} lane {}: {}(mask {:#010x}) at {}: {}", l.where.block,
                          l.where.warp, l.where.lane, name_of(kind), mask, place(where), what));
}

// A thread outside any launch is lane 0 of a warp of its own.
std::uint64_t alone(call kind, std::uint32_t mask, std::uint64_t value, unsigned source,
                    site where) {
  if (mask != 1 || (kind == call::shuffle && source != 0)) {
    throw error(errc::misuse, fmt::format("{}(mask {:#010x}) at {}: called outside a launch, where "
                                          "only lane 0 exists; use mask 0x1 or launch a kernel",
                                          name_of(kind), mask, place(where)));
  }
  return kind == call::match_any ? 1 : value;
}

group& join(warp& w, lane& l, call kind, std::uint32_t mask, site where) {
  for (std::uint32_t rest = w.open; rest != 0; rest &= rest - 1) {
    group& g = w.groups[std::countr_zero(rest)];
    if (g.mask != mask) continue;
    if (g.kind != kind) {
      misuse(l, kind, mask, where,
             fmt::format(
                 "{} wait in {} at {} with the same mask; all lanes of a mask make the same call",
                 lane_set(g.arrived), name_of(g.kind), place(g.at)));
    }
    g.sync.release();
    return g;
  }
  const auto slot = std::countr_one(w.taken);  // at most 32 lanes are in groups, so one is free
  w.taken |= 1u << slot;
  w.open |= 1u << slot;
  group& g = w.groups[slot];
  g.mask = g.leaving = mask;
  g.arrived = 0;
  g.kind = kind;
  g.at = where;
  g.sync.first();
  return g;
}

void give_results(warp& w, const group& g) {
  switch (g.kind) {
    case call::ballot: {
      std::uint32_t bits = 0;
      for (std::uint32_t m = g.mask; m != 0; m &= m - 1) {
        const int i = std::countr_zero(m);
        bits |= static_cast<std::uint32_t>(w.lanes[i].value) << i;
      }
      for (std::uint32_t m = g.mask; m != 0; m &= m - 1) w.lanes[std::countr_zero(m)].result = bits;
      break;
    }
    case call::shuffle:
      for (std::uint32_t m = g.mask; m != 0; m &= m - 1) {
        lane& l = w.lanes[std::countr_zero(m)];
        l.result = w.lanes[l.source].value;
      }
      break;
    case call::match_any:
      for (std::uint32_t todo = g.mask; todo != 0;) {
        const std::uint64_t value = w.lanes[std::countr_zero(todo)].value;
        std::uint32_t same = 0;
        for (std::uint32_t m = todo; m != 0; m &= m - 1) {
          if (w.lanes[std::countr_zero(m)].value == value) same |= m & -m;
        }
        for (std::uint32_t m = same; m != 0; m &= m - 1) w.lanes[std::countr_zero(m)].result = same;
        todo &= ~same;
      }
      break;
    default:
      break;
  }
}

std::uint64_t collective(call kind, std::uint32_t mask, std::uint64_t value, unsigned source,
                         site where) {
  worker* me = self;
  if (me == nullptr) return alone(kind, mask, value, source, where);
  if (me->cancelling) {
    me->give_up_call();
    return 0;
  }
  lane& l = *me->active;
  // Nobody else takes part.
  if (mask == l.bit() && !me->seeded && (kind != call::shuffle || source == l.where.lane))
    return kind == call::match_any ? mask : kind == call::ballot ? value << l.where.lane : value;
  warp& w = *l.home;
  if ((mask & l.bit()) == 0) misuse(l, kind, mask, where, "the caller is not in its own mask");
  if (kind == call::shuffle && (source >= warp_size || (mask >> source & 1u) == 0)) {
    misuse(l, kind, mask, where, fmt::format("the source, lane {}, is not in the mask", source));
  }
  group& g = join(w, l, kind, mask, where);
  g.arrived |= l.bit();
  l.value = value;
  l.source = source;
  if (g.arrived == mask) {
    give_results(w, g);
    const std::uint32_t others = mask & ~l.bit();
    w.collecting &= ~others;
    w.runnable |= others;
    w.open &= ~(1u << (&g - w.groups));
    me->schedule_point();
  } else {
    l.in = kind;
    l.mask = mask;
    l.at = where;
    w.collecting |= l.bit();
    if ((mask & w.ended) != 0) {
      me->home.fail_stuck(
          fmt::format("deadlock: block {} warp {}: {} ended, and a collective waits for it",
                      l.where.block, l.where.warp, lane_set(mask & w.ended)));
    }
    me->rest();
  }
  g.sync.acquire();
  g.leaving &= ~l.bit();
  if (g.leaving == 0) w.taken &= ~(1u << (&g - w.groups));
  return l.result;
}

constexpr position outside{};

// A thread that waits outside any launch: reacts fast for about 50 us, then sleeps.
void pause_thread(unsigned turn) {
  if (turn < 256) {
    relax();
  } else if (turn < 512) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(turn < 1024   ? 20
                                                          : turn < 2048 ? 100
                                                                        : 1000));
  }
}

fence_state& fences() {
  static thread_local fence_state of_thread;
  return self != nullptr && self->active != nullptr ? self->active->fences : of_thread;
}

}  // namespace

bool& passed_release_fence() { return fences().released; }

void remember_read(void* object) {
  fence_state& f = fences();
  f.read[f.reads++ % std::size(f.read)] = object;
}

void acquire_what_was_read() {
  fence_state& f = fences();
  for (unsigned i = 0; i < f.reads && i < std::size(f.read); ++i) __tsan_acquire(f.read[i]);
  f.reads = 0;
}

const position& current() { return self != nullptr ? self->active->where : outside; }

void sync_warp(std::uint32_t mask, site where) { collective(call::sync_warp, mask, 0, 0, where); }

void sync_task(site where) { collective(call::sync_task, full_mask, 0, 0, where); }

std::uint32_t ballot(std::uint32_t mask, bool predicate, site where) {
  return static_cast<std::uint32_t>(collective(call::ballot, mask, predicate ? 1 : 0, 0, where));
}

std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, unsigned source, site where) {
  return collective(call::shuffle, mask, value, source, where);
}

std::uint32_t match_any(std::uint32_t mask, std::uint64_t value, site where) {
  return static_cast<std::uint32_t>(collective(call::match_any, mask, value, 0, where));
}

std::uint32_t active_mask(site where) {
  worker* me = self;
  if (me == nullptr) return 1;
  lane& l = *me->active;
  if (me->cancelling) {
    me->give_up_call();
    return l.bit();
  }
  if (me->seeded && me->seeded->one_in(8)) return l.bit();  // a legal answer, if a lonely one
  warp& w = *l.home;
  l.in = call::active_mask;
  l.at = where;
  if (w.converging == 0) w.polled = 0;
  w.converging |= l.bit();
  me->rest();
  return static_cast<std::uint32_t>(l.result);
}

std::uint32_t own_or_active_mask(site where) {
  const worker* me = self;
  if (me == nullptr || me->seeded || me->cancelling) return active_mask(where);
  return me->active->bit();
}

void sync_block(site where) {
  worker* me = self;
  if (me == nullptr) return;
  if (me->cancelling) return me->give_up_call();
  lane& l = *me->active;
  warp& w = *l.home;
  block& b = *w.home;
  sanitizer::edge& sync = b.barrier[b.generation & 1];
  if (b.arrived == 0) {
    sync.first();
  } else {
    sync.release();
  }
  if (++b.arrived == b.live) {
    b.release_barrier();
    me->schedule_point();
  } else {
    l.in = call::sync_block;
    l.at = where;
    w.at_barrier |= l.bit();
    me->rest();
  }
  sync.acquire();
}

void poll_pause(unsigned turn, const char* why, site where) {
  worker* me = self;
  if (me == nullptr) return pause_thread(turn);
  if (me->cancelling) return me->give_up_call();
  lane& l = *me->active;
  warp& w = *l.home;
  l.in = call::poll;
  l.why = why;
  l.at = where;
  w.polled |= l.bit();
  w.polling |= l.bit();
  if (turn == 0) me->progress = true;
  if (me->seeded) {
    w.rested |= l.bit();
    ++me->seeded->pauses;
    me->seeded->lowest_priority(l);
  }
  me->rest();
}

void schedule_point() {
  if (self != nullptr) self->schedule_point();
}

void* block_shared(const void* key, std::size_t size, std::size_t alignment) {
  if (self == nullptr) {
    throw error(errc::misuse, "block_shared was called outside a launch, where there is no block");
  }
  return self->active->home->home->shared(key, size, alignment);
}

void block::release_barrier() {
  for (unsigned i = 0; i < warp_count; ++i) {
    warps[i].runnable |= warps[i].at_barrier;
    warps[i].at_barrier = 0;
  }
  arrived = 0;
  ++generation;
}

void* block::shared(const void* key, std::size_t size, std::size_t alignment) {
  for (unsigned i = 0; i < object_count_; ++i) {
    if (objects_[i].key == key) return arena_ + objects_[i].offset;
  }
  // Under AddressSanitizer the bytes between two objects stay poisoned.
  const std::size_t gap = sanitizer::has_asan() && used_ != 0 ? 16 : 0;
  const std::size_t offset = (used_ + gap + alignment - 1) / alignment * alignment;
  if (offset + size > arena_size || object_count_ == max_shared || alignment > 256) {
    throw error(errc::out_of_memory,
                fmt::format("block_shared: {} bytes asked for, {} of {} in use by {} objects of at "
                            "most {}, alignment {} of at most 256; share less in one block",
                            size, used_, arena_size, object_count_, max_shared, alignment));
  }
  sanitizer::unpoison(arena_ + offset, size);
  objects_[object_count_++] = {key, offset};
  used_ = offset + size;
  return arena_ + offset;
}

}  // namespace grosr::simt::host
