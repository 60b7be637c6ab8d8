// A worker deals with a packet that it took, and says that packets and tickets are done.
// docs/internals/scheduler.md, "The way of a single task", "Completion".
#pragma once

namespace grosr::run {

// ---- packets ----

/// Whole warp, active: deals with a packet. A task that it carries is run, and a block task goes to
/// the block; else returns the ref that this warp must run.
template <class Policy, class... Tasks>
GROSR_DEVICE ref worker<Policy, Tasks...>::open_packet(const queue::held_packet& l) {
  if (bundle_ > 1) {
    end_of_spinning();
    packet_header h{};
    v_.submission.rings[l.mine.w[0]].read_staged(l.mine.w[1], &h.kind, 1);
    run_packet(h, l);
    return {};
  }
  packet_header h = packet_header::of(l);
  // They are this worker's now, and it is counted.
  if (h.comes_back() && leads()) activity_word().fetch_sub(h.count, simt::acq_rel);
  if (h.carries_task()) {
    end_of_spinning();
    run_packet(h, l);
    return {};
  }
  std::uint32_t type = h.type();
  ref r = ref::make(h.slot, true, 0, h.count, type, h.level(), true);
  bool meets = false, prefetched = false;
  if (leads()) {
    w_.packet = h;
    if (h.count > 1 || spawner_type::is_block_type(type)) {
      slot_info& s = v_.submission.slots[h.slot];
      s.total = h.count;
      s.ticket = h.ticket;
      s.ticket_packets = h.ticket_packets;
      s.generation = h.generation;
      s.ticket_generation = h.ticket_generation;
    }
    if (spawner_type::is_block_type(type)) {
      const std::uint32_t before = published(b_.deques);
      spawner_.push_any(r, false);
      meets = ask_for_rendezvous(false) && h.count == 1;
      std::uint64_t none = 0;
      prefetched = meets && simt::atomic_ref<std::uint64_t, simt::scope::block>(b_.prefetched)
                                .compare_exchange(none, r.split().bits, simt::relaxed);
      if (prefetched) b_.published_at_prefetch = before;
    }
  }
  end_of_spinning();  // who comes after sees the call for a rendezvous, and polls nothing before it
  simt::sync_warp();
  if (!spawner_type::is_block_type(type)) return r;
  if (simt::shuffle(simt::full_mask, meets ? 1u : 0u, 0) != 0) outcome_ = outcome::meets;
  // While the others come, and before this warp does.
  if (simt::shuffle(simt::full_mask, prefetched ? 1u : 0u, 0) != 0) load_record(r);
  return {};
}

/// Whole warp, active: runs the task of a packet that carries it (lane and warp types), says that
/// it is complete, and runs what it started, if that is what the last one of its type did.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::run_packet(const packet_header& h,
                                                       const queue::held_packet& l) {
  flush_completions();
  std::uint32_t type = h.type();
  begin_busy();
  if constexpr (spawner_type::any_near)
    if (leads() && w_.follows[type] != 0 && w_.open_mask == 0)
      spawner_type::open_near(&b_, w_.follows[type] - 1u, 1);
  // For quiescence: while this worker is the sole active one nobody else claims, so it is not too
  // early.
  const std::uint32_t claimed = packets_claimed(simt::relaxed);
  if (bundle_ > 1)
    run_cycles_ = run_bundle(&b_, h.kind, l.mine.w[0], l.mine.w[1], std::exchange(bundle_, 1u));
  else
    ((type == types::template index_of<Tasks>() ? (run_packet_typed<Tasks>(h, l), 0) : 0), ...);
  // After the run's system fence.
  const std::uint64_t activity = leads() ? activity_word().load(simt::relaxed) : 0;
  if (hands_empty()) {
    outcome_ = outcome::nothing_left;
    publish_if_sole(claimed, activity);
  } else if constexpr (spawner_type::any_near) {
    follow(type);
  }
  end_busy();
}

/// Whole warp, after a packet's task of this type, which may have left something: runs that if it
/// is near, else sees to it that the next time it is.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::follow(std::uint32_t type) {
  if (!has_near()) {
    if (leads()) w_.follows[type] = static_cast<std::uint8_t>(spawner_.only_kind(false) + 1);
    return;
  }
  const ran result = run_near(run_cycles_);
  run_cycles_ = result.cycles;
  burst_runs_ = result.runs;
  if (leads() && result.runs == 0) w_.follows[type] = 0;
  if (!hands_empty()) return;
  outcome_ = outcome::nothing_left;
  say_if_sole();
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::run_packet_typed(const packet_header& h,
                                                             const queue::held_packet& l) {
  if constexpr (width_of<T>() != width::block) {
    constexpr std::uint32_t type = types::template index_of<T>();
    constexpr unsigned words = stride_of<T> / 4;
    std::uint32_t payload[words];
    for (unsigned i = 0; i < words; ++i) payload[i] = l.word(packet_payload_word + i);
    loaded<T> held;
    T& task = held.task;
    __builtin_memcpy(&task, payload, sizeof(T));
    begin_run(type, true, h.slot | trace_event::in_slot);
    if constexpr (has_collector)
      if (leads()) set_alone(type, spawner_.others_wait());
    simt::sync_warp();
    const bool mine = width_of<T>() == width::warp || leads();
    const bool failed = execute(task, mine, h.level(), true) != 0;
    end_run(type, 1, failed ? 1 : 0);
    if constexpr (may_bundle<T>) learn_from_run(type);
    simt::fence<simt::scope::system>(simt::acq_rel);  // R2; and for publish_if_sole()
    if (leads())
      finish(h.slot, h.generation, h.ticket, h.ticket_generation, h.ticket_packets, failed);
  }
}

/// Whole warp, active: runs the tasks of a bundle of this kind of packets, and says that they are
/// complete. How many cycles that took. Out of line, for the registers of a single task.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE std::uint64_t worker<Policy, Tasks...>::run_bundle(
    shared* block, std::uint32_t kind, unsigned ring, std::uint32_t number, unsigned count) {
  worker self(simt::in_block_shared(block));
  packet_header h{};
  h.kind = kind;
  ((h.type() == types::template index_of<Tasks>()
        ? (self.template run_bundle_as<Tasks>(h, ring, number, count), 0)
        : 0),
   ...);
  return self.run_cycles_;
}

template <class Policy, class... Tasks>
template <class T>
GROSR_DEVICE void worker<Policy, Tasks...>::run_bundle_as(packet_header h, unsigned ring,
                                                          std::uint32_t number, unsigned count) {
  if constexpr (may_bundle<T>) {
    constexpr std::uint32_t type = types::template index_of<T>();
    constexpr unsigned words = packet_payload_word + stride_of<T> / 4;
    const unsigned lane = simt::lane_id();
    const std::uint32_t level = h.level();
    loaded<T> held;
    T& task = held.task;
    if (lane < count) {
      const queue::submission_ring_ref r = v_.submission.rings[ring];
      std::uint32_t content[words];
      r.read_staged(number + lane, content, words);
      r.free_staged(number + lane);
      __builtin_memcpy(&h, content, sizeof h);
      __builtin_memcpy(static_cast<void*>(&task), content + packet_payload_word, sizeof(T));
    }
    begin_run(type, true, 0);
    if (leads()) set_alone(type, false);
    simt::sync_warp();
    const std::uint32_t bad = execute(task, lane < count, level, true);
    end_run(type, count, simt::popcount(bad));
    learn_from_run(type);
    simt::fence<simt::scope::system>(simt::acq_rel);  // R2; and for publish_if_sole()
    if (lane < count)
      finish(h.slot, h.generation, h.ticket, h.ticket_generation, h.ticket_packets,
             (bad >> lane & 1) != 0);
  }
}

/// Whole warp, after a run of tasks of packets.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::learn_from_run(std::uint32_t type) {
  const bool was_long = run_cycles_ > Policy::bundle_cycles;
  if (leads() && (was_long || w_.bundle_limits[type] < simt::warp_size))
    set_bundle_limit(&b_, type, was_long);
}

/// One lane: says how many packets of this type are taken together from now on. After a long run it
/// is one, for the next ones may be as long, and those beside them short.
template <class Policy, class... Tasks>
GROSR_DEVICE GROSR_NOINLINE void worker<Policy, Tasks...>::set_bundle_limit(shared* block,
                                                                            std::uint32_t type,
                                                                            bool was_long) {
  worker self(simt::in_block_shared(block));
  simt::atomic_ref<std::uint32_t> all(self.v_.common.bundle_limits[type]);
  std::uint8_t& mine = self.w_.bundle_limits[type];
  if (was_long)
    all.store(mine = 1, simt::relaxed);
  else
    all.fetch_max(mine *= 2, simt::relaxed);
}

/// Whole warp, between runs: whether nothing is left of what this worker took or was given.
template <class Policy, class... Tasks>
GROSR_DEVICE bool worker<Policy, Tasks...>::hands_empty() {
  bool some = leads() && (w_.open_mask != 0 || w_.pushed != 0 || nonempty(w_.deques) != 0 ||
                          nonempty(b_.deques) != 0);
  return simt::shuffle(simt::full_mask, some ? 1u : 0u, 0) == 0;
}

// ---- completion ----

/// Whole warp: `n` tasks of a slot were run, `failed` of them with an error. Counts that the next
/// run is likely to add to are flushed later: at the latest before this worker rests.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::complete(ref r, std::uint32_t n, std::uint32_t failed,
                                                     bool more) {
  simt::sync_warp();
  if (r.whole()) {
    if (leads()) {
      const packet_header& l = w_.packet;
      report(l.slot, l.generation, l.ticket, l.ticket_generation, l.ticket_packets, failed != 0);
    }
    return;
  }
  if (pending_slot_ != r.where()) flush_completions();
  pending_slot_ = r.where();
  pending_done_ += n;
  pending_failed_ += failed;
  if (!more) flush_completions();
}

/// Whole warp: adds what is pending to its slot's counter; whoever completes it reports.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::flush_completions() {
  if (pending_slot_ == no_slot) return;
  simt::sync_warp();
  if (leads()) {
    slot_info& s = v_.submission.slots[pending_slot_];
    simt::atomic_ref<std::uint64_t> count(s.count);
    // Read before the count: after it another worker may complete the slot, and the next packet in
    // it overwrites the total.
    const std::uint32_t total = s.total;
    // A worker that did all of them needs no count: it was 0 and stays that.
    const bool alone = pending_done_ == total;
    std::uint64_t now = slot_count::of(pending_done_, pending_failed_);
    simt::fence<simt::scope::system>(simt::acq_rel);  // R1: what the tasks did, before the count
    if (alone) {                                      // and R2
      finish(pending_slot_, s.generation, s.ticket, s.ticket_generation, s.ticket_packets,
             slot_count::any_failed(now));
    } else {
      now += count.fetch_add(now, simt::relaxed);
      if (slot_count::done(now) == total) {
        count.fetch_sub(now, simt::relaxed);
        report(pending_slot_, s.generation, s.ticket, s.ticket_generation, s.ticket_packets,
               slot_count::any_failed(now));
      }
    }
  }
  pending_slot_ = no_slot;
  pending_done_ = pending_failed_ = 0;
}

/// One lane: completes a packet, and its ticket with its last packet.
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::report(std::uint32_t slot, std::uint32_t generation,
                                                   std::uint32_t ticket,
                                                   std::uint32_t ticket_generation,
                                                   std::uint32_t ticket_packets, bool failed) {
  simt::fence<simt::scope::system>(simt::acq_rel);  // R2
  finish(slot, generation, ticket, ticket_generation, ticket_packets, failed);
}

/// One lane, after R2, which releases results, the staging buffer's reading and the counters'
/// resetting; and acquires what others did for the same count (A2, pairs with their R1). The words
/// pair with the acquires in engine::done() and engine::take_slot().
template <class Policy, class... Tasks>
GROSR_DEVICE void worker<Policy, Tasks...>::finish(std::uint32_t slot, std::uint32_t generation,
                                                   std::uint32_t ticket,
                                                   std::uint32_t ticket_generation,
                                                   std::uint32_t ticket_packets, bool failed) {
  using word = simt::atomic_ref<std::uint32_t, simt::scope::system>;
  // A task that returned because it was told to abort has not been run.
  if (run_cycles_ > Policy::long_run_cycles && v_.aborted()) return;
  if (ticket_packets != 0) {
    simt::atomic_ref<std::uint64_t> count(v_.submission.slots[ticket].count);
    std::uint64_t more = slot_count::of(1, failed ? 1 : 0);
    std::uint64_t now = count.fetch_add(more, simt::relaxed) + more;
    if (slot_count::done(now) == ticket_packets) {
      count.fetch_sub(now, simt::relaxed);
      simt::fence<simt::scope::system>(simt::acq_rel);  // A2 and R2 for the other packets
      word(v_.submission.slot_words[ticket])
          .store(slot_word::of(ticket_generation, slot_count::any_failed(now)), simt::relaxed);
    }
  }
  word(v_.submission.slot_words[slot]).store(slot_word::of(generation, failed), simt::relaxed);
}

}  // namespace grosr::run
