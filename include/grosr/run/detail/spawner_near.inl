// Of spawner: the newest records that a run spawned may be near, in the stage of the warp, from
// where this worker runs them next; what becomes of them when it may not.
// docs/internals/scheduler.md, "The short way".
#pragma once

namespace grosr::run {

static_assert(batch_records * max_task_bytes <= stage_bytes);

/// One lane, lock held or nobody spawning.
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::set_near(near_state state, std::uint32_t kind) {
  w_.near = state;
  w_.near_kind = kind;
  const std::uint32_t bit = state == near_state::none ? 0 : near_bit;
  simt::atomic_ref<std::uint32_t, simt::scope::block>(w_.deques.nonempty)
      .store((w_.deques.nonempty & ~near_bit) | bit, simt::relaxed);
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::open_near(shared* block,
                                                                      std::uint32_t kind,
                                                                      std::uint32_t count) {
  spawner self(simt::in_block_shared(block));
  local& w = self.w_;
  if (!fits_near(kind, count) || w.magazine_count == 0 || w.slow_spawns != 0) return;
  const std::uint32_t type = kind / priority_levels;
  open_batch& open = w.open[kind];
  open.batch = w.magazine[--w.magazine_count];
  open.at = w.stage - first_near(kind) * stride_at(type);
  open.count = open.written = open.first = first_near(kind);
  w.open_mask |= kind_bit(kind);
  self.set_near(near_state::open, kind);
  w.slow_spawns |= slow_for_near;
}

template <class Policy, class... Tasks>
GROSR_DEVICE std::uint32_t spawner<Policy, Tasks...>::only_kind(bool block) const {
  if (w_.open_mask == 0 || (w_.open_mask & (w_.open_mask - 1)) != 0) return no_kind;
  const std::uint32_t kind = simt::lowest_bit64(w_.open_mask);
  return is_block_type(kind / priority_levels) == block &&
                 w_.deques.private_count[kind % priority_levels] == 0 &&
                 fits_near(kind, records_of(kind))
             ? kind
             : no_kind;
}

/// One lane, lock held: the open batch, which is near, is full. It stays, beside the next one,
/// unless the run is long.
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::keep_near() {
  w_.slow_spawns &= ~slow_for_near;
  w_.near = near_state::full;
  w_.near_batch = w_.open[w_.near_kind].batch;
}

/// One lane: the first n records that are near go to this batch.
template <class Policy, class... Tasks>
GROSR_DEVICE void spawner<Policy, Tasks...>::copy_near(std::uint32_t batch, std::uint32_t n) const {
  const std::uint32_t pieces = n * stride_at(w_.near_kind / priority_levels) / 16;
  auto* const to = reinterpret_cast<piece*>(v_.batch_at(batch));
  GROSR_NO_UNROLL
  for (std::uint32_t i = 0; i < pieces; ++i) to[i] = reinterpret_cast<const piece*>(w_.stage)[i];
}

/// One lane, lock held if `locked`, or nobody spawning: the open batch, which is near and of which
/// n places are taken, is one of the worker's own from now on, or free again if it has no record.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::close_near(shared* block,
                                                                       std::uint32_t n,
                                                                       bool locked) {
  spawner self(simt::in_block_shared(block));
  local& w = self.w_;
  const std::uint32_t kind = w.near_kind;
  std::uint32_t& batch = w.open[kind].batch;
  n -= first_near(kind);
  self.copy_near(batch, n);
  w.slow_spawns &= ~slow_for_near;
  self.set_near(near_state::none, no_kind);
  if (n != 0) {
    self.close(kind, n, locked);
  } else {
    free_batch(self.v_, w, batch);
    batch = no_batch;
  }
}

/// One lane, lock held if `locked`, or nobody spawning: what is near and full is one of the
/// worker's own from now on.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::push_near(shared* block, bool locked) {
  spawner self(simt::in_block_shared(block));
  local& w = self.w_;
  const std::uint32_t kind = w.near_kind, type = kind / priority_levels;
  const std::uint32_t n = batch_records - first_near(kind);
  self.copy_near(w.near_batch, n);
  self.set_near(near_state::none, no_kind);
  w.spawned += n;
  self.push_any(ref::make(w.near_batch, false, 0, n, type, kind % priority_levels, false), locked);
}

template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void spawner<Policy, Tasks...>::end_near(shared* block) {
  spawner self(simt::in_block_shared(block));
  local& w = self.w_;
  if (w.near == near_state::full) return push_near(block, false);
  if (w.near == near_state::none) return;
  open_batch& open = w.open[w.near_kind];
  const std::uint32_t n = open.count < batch_records ? open.count : batch_records;
  w.open_mask &= ~kind_bit(w.near_kind);
  open.count = nowhere;
  close_near(block, n, false);
}

}  // namespace grosr::run
