// The runtime and streams of the program: tasks that wait for streams, streams that wait for
// tickets. docs/internals/scheduler.md, "Streams".
#include <algorithm>

#include "grosr/simt/asymmetric_fence.hpp"
#include "run/engine.hpp"

namespace grosr::run {

// Tasks that wait for a stream or an event: they have a ticket, and get slots when they are due.
ticket_id engine::submit_after(const simt::moment& when, unsigned type, const void* data,
                               std::size_t n, unsigned level) {
  const auto check = [&] { throw_unless_accepts("submit_after", type, n, level); };
  check();
  simt::check_order(device_, when, "submit_after");
  const task_type& t = program_.types[type];
  interop::deferred d{.type = type,
                      .level = level,
                      .a_packet = tasks_a_packet(t.how_wide, n, options_.staging_buffers),
                      .packets = 0,
                      .count = n,
                      .sent = 0,
                      .ticket = {},
                      .tasks = {}};
  d.packets = static_cast<std::uint32_t>((n + d.a_packet - 1) / d.a_packet);
  std::optional<std::uint32_t> slot;
  try {
    auto* from = static_cast<const std::byte*>(data);
    d.tasks.assign(from, from + n * t.bytes);
    slot = take_slot(slot_kind::ticket, d.ticket.generation);
    if (!slot)
      throw error(errc::out_of_memory,
                  "submit_after: all " + std::to_string(options_.slots) +
                      " tickets are in use; wait for some first, or raise runtime_options::slots");
    d.ticket.slot = *slot;
    slot_types_[*slot].store(static_cast<std::uint8_t>(type), std::memory_order_relaxed);
    const ticket_id ticket = d.ticket;
    interop_->submit_at(when, std::move(d), check);
    submitted_.fetch_add(n, std::memory_order_relaxed);
    return ticket;
  } catch (...) {
    if (slot) give_slot_back(*slot, d.ticket.generation);
    rethrow_as_error("submit_after: " + std::to_string(n) + " " + t.name + " were handed over");
  }
}

// As much as there is room for now: whether that was all.
bool engine::send_deferred(interop::deferred& d) {
  if (aborting_ || life_ == life::lost) return false;
  const std::size_t bytes = program_.types[d.type].bytes, before = d.sent;
  try {
    while (d.sent < d.count) {
      const auto count =
          static_cast<std::uint32_t>(std::min<std::size_t>(d.a_packet, d.count - d.sent));
      if (!send_packet(d.type, d.level, d.tasks.data() + d.sent * bytes, count, &d.ticket,
                       d.packets, {}, true))
        break;
      d.sent += count;
    }
    if (d.sent != before) call_kernel();
  } catch (const error&) {  // the runtime is lost, and whoever waits learns that
    return false;
  }
  return d.sent == d.count;
}

void engine::record(ticket_id t, const simt::any_stream& s) {
  throw_if_ended();
  simt::check_order(device_, s, "record");
  if (done(t)) return;
  bool recorded = false;
  try {
    recorded = interop_->record(s, t, &slot_words_[t.slot], slot_word::of(t.generation, false));
  } catch (...) {
    rethrow_as_error("record: a stream was to wait for a ticket");
  }
  if (!recorded) wait(t, {});  // throws why the runtime ends
  // As a submitter: a stop() may have looked before the kernel was called.
  simt::light_fence();  // P2
  if (life_ == life::stopped && goes_on_after_stop()) stop({});
}

void engine::make_interop() {
  interop_ = std::make_shared<interop>(
      device_, interop::owner{
                   .send = [this](interop::deferred& d) { return send_deferred(d); },
                   .fail =
                       [this](ticket_id t) {
                         host_word(slot_words_[t.slot])
                             .store(slot_word::of(t.generation, true), simt::release);
                       },
                   .done = [this](ticket_id t) { return done(t); },
                   .come = [this] { call_kernel(); },
                   .stay = [this](bool stays) { stay(stays); },
               });
}

// The runtime runs nothing any more: streams that wait for tickets go on. Those stay not done.
void engine::release_streams() {
  for (const ticket_id t : interop_->abandon()) {
    if (done(t)) continue;
    {
      std::lock_guard lock(failed_lock_);
      released_.insert({t.slot, t.generation});
      some_released_ = true;
    }
    host_word(slot_words_[t.slot]).store(slot_word::of(t.generation, true), simt::release);
  }
}

}  // namespace grosr::run
