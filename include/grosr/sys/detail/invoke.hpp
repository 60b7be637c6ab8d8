// Making a call: begin() brings it to the server, finish() its result and bytes back. A blocking
// call is both; a started one returns the token in between.
#pragma once

#include "grosr/simt/shared.hpp"
#include "grosr/sys/caller.hpp"
#include "grosr/sys/detail/detach.hpp"
#include "grosr/sys/detail/operation.hpp"

namespace grosr::sys {

/// A call that was begun. Belongs to the group that made it: those lanes, warp 0 of the block;
/// others of the block hold one that only says so.
template <granularity G, unsigned Parts, bulk Bulk>
struct token {
  pending call;
  stowage<Parts> where;
  part part_of[Parts == 0 ? 1 : Parts];
  long code = 0;  ///< why it was not begun, or -EINPROGRESS for those who do not wait
  bool waits = false;
  bool calls = false;  ///< of a grid: this block makes the call

  /// False when the call was not begun: its result, `code`, is known already.
  GROSR_DEVICE bool begun() const { return waits; }
};

namespace detail {

/// What threads of a block tell each other in a call.
struct block_stage {
  unsigned char* chunk;
  void* own;
  std::size_t bytes;
  long result;
};

/// Whether a call that finds no slot or no chunk waits for none. Those of calls that are awaited
/// come back when a worker has their completions: if all workers waited here, none would.
template <class Caller>
inline constexpr bool gives_up_at_once = Caller::attempts || is_awaiting<Caller>;

/// Lanes of `mask` together; each has a call of its own. Tries once.
template <bool Awaited, class Token, unsigned Parts, bulk Bulk>
GROSR_DEVICE bool try_claim(const view& v, std::uint32_t mask, Token& t,
                            const operation<Parts, Bulk>& o) {
  t.code = o.bad != 0 ? o.bad : t.where.plan(v, o) ? 0 : -EFAULT;
  const bool fits = t.code == 0;
  const std::uint32_t able = simt::ballot(mask, fits);
  return fits && t.where.template try_claim<Awaited>(v, able);
}

/// The record of a call whose bytes are in place.
template <class Token, unsigned Parts, bulk Bulk>
GROSR_DEVICE call_record addressed(const view& v, Token& t, operation<Parts, Bulk>& o) {
  for_parts<Parts>([&](unsigned i) {
    t.part_of[i] = o.part_of[i];
    o.record.argument[o.part_of[i].argument] = t.where.address(v, o.part_of[i], i);
  });
  // R1: what the host is to find in the chunk, or in its own memory; pairs with the record's words.
  if constexpr (Parts != 0) simt::fence<simt::scope::system>(simt::release);
  return o.record;
}

/// What a call leaves for its completion, if it is awaited: by one lane, which has the token, after
/// it has a slot and before the record is written.
template <class Token, class Operation>
struct leave_for_completion {
  static constexpr bool awaited = true;
  const view& v;
  const Token& t;
  const Operation& o;

  GROSR_DEVICE void operator()(const pending& call) const {
    const auto& s = t.where;
    v.detached_calls[call.slot] = {call.serial,
                                   s.chunk == no_place ? no_place : s.chunk * 4 + s.size};
    if (s.chunk != no_place) leave_parts(o, s, v.awaited[s.size][s.chunk]);
    simt::fence<simt::scope::system>(simt::release);  // R5: pairs with the packet that comes back
  }

 private:
  template <unsigned Parts, bulk Bulk>
  GROSR_DEVICE static void leave_parts(const operation<Parts, Bulk>& o, const stowage<Parts>& s,
                                       awaited_chunk& left) {
    static_assert(Parts <= most_awaited_parts);
    left = {};
    for_parts<Parts>([&](unsigned i) {
      const part& p = o.part_of[i];
      if (!p.comes() || s.offset[i] == stowage<Parts>::in_place) return;
      left.part[i] = {p.at, p.bytes,
                      s.offset[i] | (p.how == travel::by_result ? awaited_part::by_result : 0u)};
    });
  }
};
template <class Caller, class Token, class Operation>
GROSR_DEVICE auto after_claim(const Caller& c, const Token& t, const Operation& o) {
  if constexpr (is_awaiting<Caller>)
    return leave_for_completion<Token, Operation>{c.where(), t, o};
  else
    return not_awaited{};
}

/// The record of a call that is awaited says so.
template <class Caller>
GROSR_DEVICE void address_completion(const Caller& c, call_record& r) {
  if constexpr (is_awaiting<Caller>) {
    r.flags |= flag_awaited;
    r.target = c.target();
  }
}

/// The leader alone copies what lies on its own stack.
GROSR_DEVICE inline bool copies_here(const part& p, unsigned& rank, unsigned& size) {
  if (!simt::is_private(p.at)) return true;
  size = 1;
  return rank == 0;
}

/// One thread's part of a copy between a chunk and what a part says.
template <bulk Bulk, bool FromChunk>
GROSR_DEVICE void copy_own(unsigned rank, unsigned size, unsigned char* chunk, void* own,
                           std::size_t bytes) {
  if constexpr (Bulk == bulk::vectors)
    copy_vectors<FromChunk>(rank, size, chunk, static_cast<const iovec*>(own), bytes);
  else if constexpr (FromChunk)
    copy_part<true>(rank, size, static_cast<unsigned char*>(own), chunk, bytes);
  else
    copy_part<false>(rank, size, chunk, static_cast<const unsigned char*>(own), bytes);
}

/// Copies the bytes of part i into the chunk.
template <bulk Bulk, unsigned Parts>
GROSR_DEVICE void stow(const view& v, const stowage<Parts>& s, const part& p, unsigned i,
                       unsigned rank, unsigned size) {
  if (!p.goes() || s.offset[i] == stowage<Parts>::in_place || !copies_here(p, rank, size)) return;
  if (i == 0)
    copy_own<Bulk, false>(rank, size, s.base(v) + s.offset[i], p.at, p.bytes);
  else
    copy_own<bulk::bytes, false>(rank, size, s.base(v) + s.offset[i], p.at, p.bytes);
}

template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE token<Caller::group, Parts, Bulk> begin_lane(const Caller& c,
                                                          operation<Parts, Bulk> o) {
  const view& v = c.where();
  token<Caller::group, Parts, Bulk> t;
  std::uint64_t deadline = 0;
  // Another kind of call is another place, though it is the same line.
  std::uint32_t mask = simt::active_mask(simt::site::here(__PRETTY_FUNCTION__)), rest = 0;
  for (unsigned turn = 0;; ++turn) {
    // Nobody waits while holding something: who does not get all of it gives back what it has.
    bool goes = try_claim<is_awaiting<Caller>>(v, mask, t, o), done = false;
    std::uint32_t able = simt::ballot(mask, goes);
    const bool all = able == mask;
    if (!all) [[unlikely]] {
      // Calls keep the order of lanes: behind one that lacks room nobody goes.
      const std::uint32_t lacking = simt::ballot(mask, !goes && t.code == 0);
      if (lacking != 0) able &= (lacking & (~lacking + 1)) - 1;
      goes = (able >> simt::lane_id() & 1) != 0;
    }
    if (goes) {
      for_parts<Parts>([&](unsigned i) { stow<Bulk>(v, t.where, o.part_of[i], i, 0, 1); });
      call_record r = addressed(v, t, o);
      address_completion(c, r);
      done = t.waits = try_issue(v, able, Caller::attempts, r, t.call, rest, after_claim(c, t, o));
    }
    if (!done) t.where.free(v);
    if (!all) [[unlikely]]
      rest = simt::ballot(mask, !done && t.code == 0);
    if (done || t.code != 0) return t;
    // The rest stays together, and tries again. When some got through, there may be room elsewhere.
    const bool fewer = rest != mask;
    mask = rest;
    const unsigned leader = simt::lowest_bit(mask);
    enum : std::uint32_t { waits, tries, gives_up } next = waits;
    if (turn == 0) deadline = simt::clock_ns() + v.patience_ns;
    if (simt::lane_id() == leader) {
      if (fewer || reclaim_any(v))
        next = tries;
      else if (gives_up_at_once<Caller> || (turn != 0 && simt::clock_ns() > deadline))
        next = gives_up;
      v.doorbell.ring();
    }
    const std::uint32_t agreed = simt::shuffle(mask, static_cast<std::uint32_t>(next), leader);
    if (agreed == gives_up) break;
    t = {};
    if (agreed == waits) simt::pause(turn, "room for a system call");
  }
  t.code = -EAGAIN;
  return t;
}

/// Copies what came back for part First and on.
template <unsigned First, granularity G, unsigned Parts, bulk Bulk>
GROSR_DEVICE void take_parts(const view& v, const token<G, Parts, Bulk>& t, long result,
                             unsigned rank, unsigned size) {
  const stowage<Parts>& s = t.where;
  for_parts<Parts, First>([&](unsigned i) {
    unsigned mine = rank, all = size;
    if (s.offset[i] == stowage<Parts>::in_place || !copies_here(t.part_of[i], mine, all)) return;
    const std::size_t bytes = bytes_back(t.part_of[i], result);
    if (i == 0)
      copy_own<Bulk, true>(mine, all, s.base(v) + s.offset[i], t.part_of[i].at, bytes);
    else
      copy_own<bulk::bytes, true>(mine, all, s.base(v) + s.offset[i], t.part_of[i].at, bytes);
  });
  if constexpr (Parts != 0) simt::fence<simt::scope::system>(simt::acquire);
}

template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE long finish_lane(const Caller& c, token<Caller::group, Parts, Bulk>& t) {
  if (!t.waits) return t.code;
  const view& v = c.where();
  const long result = await_reply(v, t.call);
  take_parts<0>(v, t, result, 0, 1);
  t.where.free(v);
  free_slot(v, t.call);
  t.waits = false;
  t.code = result;
  return result;
}

/// Lanes of c.mask() make one call; its lowest lane's. `stow_bulk`, if Bulk: copies part 0.
template <class Caller, unsigned Parts, bulk Bulk, class StowBulk>
GROSR_DEVICE token<Caller::group, Parts, Bulk> begin_warp(const Caller& c, operation<Parts, Bulk> o,
                                                          StowBulk&& stow_bulk) {
  const view& v = c.where();
  const std::uint32_t mask = c.mask();
  const unsigned lane = simt::lane_id(), leader = simt::lowest_bit(mask);
  const unsigned rank = simt::rank_in(mask, lane), size = simt::popcount(mask);
  for_parts<Parts>([&](unsigned i) {
    part& p = o.part_of[i];
    p.at =
        reinterpret_cast<void*>(simt::shuffle(mask, reinterpret_cast<std::uint64_t>(p.at), leader));
    p.bytes = simt::shuffle(mask, p.bytes, leader);
  });
  token<Caller::group, Parts, Bulk> t;
  std::uint64_t deadline = 0;
  for (unsigned turn = 0;; ++turn) {
    bool claimed = false;
    if (lane == leader) claimed = try_claim<is_awaiting<Caller>>(v, 1u << lane, t, o);
    if constexpr (Parts != 0) {
      claimed = simt::shuffle(mask, claimed ? 1u : 0u, leader) != 0;
      t.where.chunk = simt::shuffle(mask, t.where.chunk, leader);
      t.where.size = simt::shuffle(mask, t.where.size, leader);
      for_parts<Parts>(
          [&](unsigned i) { t.where.offset[i] = simt::shuffle(mask, t.where.offset[i], leader); });
      if (claimed) {
        for_parts<Parts, (Bulk == bulk::none ? 0 : 1)>(
            [&](unsigned i) { stow<Bulk>(v, t.where, o.part_of[i], i, rank, size); });
        if constexpr (Bulk != bulk::none) stow_bulk(t, o, rank, size);
      }
      simt::sync_warp(mask);
    }
    call_record r{};
    if (lane == leader && claimed) {
      r = addressed(v, t, o);
      address_completion(c, r);
    }
    t.waits = try_issue_one(v, mask, Caller::attempts, claimed, r, t.call, after_claim(c, t, o));
    if (t.waits) {
      for_parts<Parts>([&](unsigned i) { t.part_of[i] = o.part_of[i]; });
      return t;
    }
    if (lane == leader) t.where.free(v);
    t.where.chunk = no_place;
    t.code = simt::shuffle(mask, t.code, leader);
    if (t.code != 0) return t;
    if (turn == 0) deadline = simt::clock_ns() + v.patience_ns;
    bool give_up = false;
    if (lane == leader && !reclaim_any(v)) {
      give_up = gives_up_at_once<Caller> || simt::clock_ns() > deadline;
      v.doorbell.ring();
    }
    if (simt::shuffle(mask, give_up ? 1u : 0u, leader)) break;
    t = {};
    simt::pause(turn, "room for a system call");
  }
  t.code = -EAGAIN;
  return t;
}

/// The same, its lanes copying part 0 like the others.
template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE token<Caller::group, Parts, Bulk> begin_warp(const Caller& c,
                                                          const operation<Parts, Bulk>& o) {
  return begin_warp(c, o, [&](auto& mine, auto& op, unsigned rank, unsigned size) {
    stow<Bulk>(c.where(), mine.where, op.part_of[0], 0, rank, size);
  });
}

/// `take`: copies what came back.
template <class Token, class Take>
GROSR_DEVICE long finish_warp(const view& v, std::uint32_t mask, Token& t, Take&& take) {
  if (!t.waits) return t.code;
  const unsigned lane = simt::lane_id();
  const unsigned rank = simt::rank_in(mask, lane), size = simt::popcount(mask);
  const long result = await_reply(v, t.call);  // all look at the same 16 bytes
  take(t, result, rank, size);
  simt::sync_warp(mask);
  if (rank == 0) {
    t.where.free(v);
    free_slot(v, t.call);
  }
  t.waits = false;
  t.code = result;
  return result;
}

/// The same, its lanes copying all parts.
template <class Token>
GROSR_DEVICE long finish_warp(const view& v, std::uint32_t mask, Token& t) {
  return finish_warp(v, mask, t, [&](Token& mine, long result, unsigned rank, unsigned size) {
    take_parts<0>(v, mine, result, rank, size);
  });
}

/// Threads of a block copy what thread 0 has named in the stage.
template <bulk Bulk, bool FromChunk>
GROSR_DEVICE void copy_staged(const block_stage& b) {
  simt::sync_block();
  if (b.bytes != 0)
    copy_own<Bulk, FromChunk>(simt::thread_id(), simt::block_size(), b.chunk, b.own, b.bytes);
  simt::sync_block();
}

template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE token<Caller::group, Parts, Bulk> begin_block(const Caller& c,
                                                           operation<Parts, Bulk> o) {
  using call_token = token<Caller::group, Parts, Bulk>;
  block_stage& b = simt::block_shared<block_stage>();
  if constexpr (Caller::order != ordering::consumer) simt::sync_block();
  const bool all_copy =
      Bulk != bulk::none && Caller::order != ordering::consumer && o.part_of[0].goes();
  call_token t;
  if (simt::warp_id() == 0) {
    bool copied = false;
    t = begin_warp(c, o, [&](call_token& mine, auto& op, unsigned rank, unsigned size) {
      const view& v = c.where();
      if (!all_copy || copied) return stow<Bulk>(v, mine.where, op.part_of[0], 0, rank, size);
      const bool chunked = mine.where.offset[0] != stowage<Parts>::in_place;
      const bool alone = simt::is_private(op.part_of[0].at);
      if (alone) stow<Bulk>(v, mine.where, op.part_of[0], 0, rank, size);
      if (rank == 0) {
        b.chunk = mine.where.base(v) + (chunked ? mine.where.offset[0] : 0);
        b.own = op.part_of[0].at;
        b.bytes = chunked && !alone ? op.part_of[0].bytes : 0;
      }
      copied = true;
      copy_staged<Bulk, false>(b);
    });
    if (all_copy && !copied) {  // the others wait there
      if (simt::lane_id() == 0) b.bytes = 0;
      copy_staged<Bulk, false>(b);
    }
  } else {
    if (all_copy) copy_staged<Bulk, false>(b);
    t.code = -EINPROGRESS;
  }
  if constexpr (Caller::attempts) {  // everybody learns whether it was begun
    if (simt::thread_id() == 0) b.result = t.begun() ? -EINPROGRESS : t.code;
    simt::sync_block();
    if (simt::warp_id() != 0) t.code = b.result;
    simt::sync_block();
  } else if constexpr (Caller::started && Caller::order == ordering::strong) {
    simt::sync_block();
  }
  return t;
}

template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE long finish_block(const Caller& c, token<Caller::group, Parts, Bulk>& t) {
  using call_token = token<Caller::group, Parts, Bulk>;
  const view& v = c.where();
  if constexpr (Caller::order == ordering::producer) {
    if (simt::warp_id() != 0) return t.code;
    return finish_warp(v, simt::full_mask, t);
  } else {
    block_stage& b = simt::block_shared<block_stage>();
    const bool all_copy = Bulk != bulk::none && t.part_of[0].comes();
    long result = 0;
    if (simt::warp_id() == 0) {
      bool copied = false;
      result = finish_warp(
          v, simt::full_mask, t, [&](call_token& mine, long got, unsigned rank, unsigned size) {
            take_parts<(Bulk == bulk::none ? 0 : 1)>(v, mine, got, rank, size);
            if constexpr (Bulk != bulk::none) {
              if (!all_copy || simt::is_private(mine.part_of[0].at))
                return take_parts<0>(v, mine, got, rank, size);
              const bool chunked = mine.where.offset[0] != stowage<Parts>::in_place;
              if (rank == 0) {
                b.chunk = mine.where.base(v) + (chunked ? mine.where.offset[0] : 0);
                b.own = mine.part_of[0].at;
                b.bytes = chunked ? bytes_back(mine.part_of[0], got) : 0;
                b.result = got;
              }
              copied = true;
              copy_staged<Bulk, true>(b);
            }
          });
      if (!copied) {
        if (simt::lane_id() == 0) {
          b.bytes = 0;
          b.result = result;
        }
        copy_staged<Bulk, true>(b);
      }
    } else {
      copy_staged<Bulk, true>(b);
    }
    result = b.result;
    simt::sync_block();
    return result;
  }
}

/// Thread 0 of each block comes to the point; whether this block is the one that calls: for a
/// producer the last to come, for a consumer the first.
template <class Caller>
GROSR_DEVICE bool comes_to_call(const Caller& c) {
  block_stage& b = simt::block_shared<block_stage>();
  simt::sync_block();
  if (simt::thread_id() == 0) {
    // R3, A3: what all blocks did before, for the last one.
    std::uint32_t n =
        simt::atomic_ref<std::uint32_t>(c.point().arrived).fetch_add(1, simt::acq_rel);
    b.bytes = Caller::order == ordering::producer ? n + 1 == simt::grid_size() : n == 0;
  }
  simt::sync_block();
  const bool calls = b.bytes != 0;
  simt::sync_block();
  return calls;
}

template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE token<Caller::group, Parts, Bulk> begin_grid(const Caller& c,
                                                          operation<Parts, Bulk> o) {
  token<Caller::group, Parts, Bulk> t;
  if (comes_to_call(c) && simt::warp_id() == 0) {
    t = begin_warp(c, o);
    t.calls = true;
  } else {
    t.code = -EINPROGRESS;
  }
  return t;
}

/// What a call of a grid ends with: the result, of those that learn it. `calls`: the warp that
/// made it, and has it.
template <class Caller>
GROSR_DEVICE long tell_grid(const Caller& c, bool calls, long code) {
  if constexpr (Caller::order == ordering::producer) {
    return code;
  } else {
    block_stage& b = simt::block_shared<block_stage>();
    simt::atomic_ref<std::uint32_t> done(c.point().done);
    if (simt::thread_id() == 0) {
      if (calls) {
        c.point().result = code;
        done.store(1, simt::release);  // R4: pairs with A4
      } else {
        simt::wait_until([&] { return done.load(simt::acquire) != 0; },  // A4
                         simt::forever, nullptr, "the call of the grid");
      }
      b.result = c.point().result;
    }
    simt::sync_block();
    const long result = b.result;
    simt::sync_block();
    return result;
  }
}

template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE long finish_grid(const Caller& c, token<Caller::group, Parts, Bulk>& t) {
  if (t.calls) t.code = finish_warp(c.where(), simt::full_mask, t);
  return tell_grid(c, t.calls, t.code);
}

template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE token<Caller::group, Parts, Bulk> begin(const Caller& c,
                                                     const operation<Parts, Bulk>& o) {
  if constexpr (Caller::group == granularity::lane) return begin_lane(c, o);
  if constexpr (Caller::group == granularity::warp) return begin_warp(c, o);
  if constexpr (Caller::group == granularity::block) return begin_block(c, o);
  if constexpr (Caller::group == granularity::grid) return begin_grid(c, o);
}

template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE long finish(const Caller& c, token<Caller::group, Parts, Bulk>& t) {
  if constexpr (Caller::group == granularity::lane) return finish_lane(c, t);
  if constexpr (Caller::group == granularity::warp) return finish_warp(c.where(), c.mask(), t);
  if constexpr (Caller::group == granularity::block) return finish_block(c, t);
  if constexpr (Caller::group == granularity::grid) return finish_grid(c, t);
}

/// Makes a call that is awaited: 0, or why it was not made. The group calls together.
template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE long begin_awaited(const Caller& c, operation<Parts, Bulk> o) {
  static_assert(Bulk != bulk::vectors,
                "grosr: a call of vectors cannot be awaited: they may lie on the task's stack, "
                "which ends before the call does; await read or write");
  const view& v = c.where();
  // The task ends before the call does, with what lies on its stack or in its block's memory.
  if (v.host_sees_all) o.stays = false;
  std::uint64_t bytes = 0;
  for_parts<Parts>([&](unsigned i) {
    const part& p = o.part_of[i];
    bytes += p.bytes;
    if (p.comes() && p.bytes != 0 && (simt::is_private(p.at) || simt::is_block_shared(p.at)))
      o.bad = -EFAULT;
  });
  if (!o.stays && bytes > piece_bytes + 2 * name_bytes) o.bad = -EMSGSIZE;  // a chunk holds no more
  const bool leads = c.leads(), counts = leads && c.begin();
  if (leads && !counts) o.bad = -EINVAL;
  auto t = begin(c, o);
  if (counts) c.end(t.begun(), t.code);
  if (t.begun()) v.doorbell.ring();
  return t.begun() ? 0 : t.code;
}

}  // namespace detail

/// Makes a call: its result, or a token if the caller only starts it; if the caller awaits it, 0 or
/// why it was not made.
template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE auto invoke(const Caller& c, const operation<Parts, Bulk>& o) {
  if constexpr (is_awaiting<Caller>) {
    return detail::begin_awaited(c, o);
  } else {
    auto t = detail::begin(c, o);
    if constexpr (Caller::started) {
      if (t.begun()) c.where().doorbell.ring();  // who waits rings while waiting
      return t;
    } else {
      return detail::finish(c, t);
    }
  }
}

/// Whether a started call has ended, so that wait() does not wait. Any of the lanes that hold it;
/// of a block or a grid only those of the warp that makes the call can tell, to others it has
/// ended.
template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE bool test(const Caller& c, const token<Caller::group, Parts, Bulk>& t) {
  long result = 0;
  return !t.begun() || has_reply(c.where(), t.call, result);
}

/// The result of a started call, when it has ended; its bytes are in place then. The group that
/// started it calls together, once.
template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE long wait(const Caller& c, token<Caller::group, Parts, Bulk>& t) {
  return detail::finish(c, t);
}

/// Lets a started call go on; its result is lost. The group that started it, once, in place of
/// wait(). 0, or why it was not begun; -EINPROGRESS in the warps of a block or a grid that do not
/// make the call.
template <class Caller, unsigned Parts, bulk Bulk>
GROSR_DEVICE long drop(const Caller& c, token<Caller::group, Parts, Bulk>& t) {
  if (!t.begun()) return t.code;
  if (Caller::group == granularity::lane || simt::lane_id() == simt::lowest_bit(c.mask())) {
    const std::uint32_t others = detach(
        c.where(), t.call, t.where.chunk == no_place ? no_place : t.where.chunk * 4 + t.where.size);
    // Rather now and then than by those who find no chunk after looking at all of them.
    constexpr unsigned many = 4;
    if (Caller::group != granularity::lane && simt::popcount(others) >= many)
      reclaim(c.where(), t.call.slot / 32);
  }
  t.waits = false;
  return 0;
}

}  // namespace grosr::sys
