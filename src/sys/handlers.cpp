// Calls of the program's own functions. They run on threads of their own, where they may take as
// long as they like; those that say that they are quick, or reply later, on the service thread that
// took the call.
#include <errno.h>

#include <fmt/format.h>

#include <new>
#include <optional>
#include <system_error>

#include "sys/deferred.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {

void service::install(call_number number, detail::installed_handler handler) {
  std::unique_lock lock(shared_lock_);
  if (handlers_.size() <= number) handlers_.resize(number + 1u);
  handlers_[number] = std::make_shared<const detail::installed_handler>(std::move(handler));
}

/// Numbers are used again as late as possible: kernels may still have the last one's.
handler_ref service::add(detail::installed_handler handler) {
  constexpr std::size_t most = 0x10000 - added_base;
  auto added = std::make_shared<const detail::installed_handler>(std::move(handler));
  std::unique_lock lock(shared_lock_);
  for (std::size_t tried = 0; tried < most; ++tried) {
    const std::size_t at = (next_added_ + tried) % most;
    if (at >= added_.size()) added_.resize(at + 1);
    if (added_[at]) continue;
    added_[at] = std::move(added);
    next_added_ = at + 1;
    return {static_cast<call_number>(added_base + at)};
  }
  throw error(errc::invalid_option,
              fmt::format("add a handler: the server has {} that were added, as many as there can "
                          "be; remove some",
                          most));
}

void service::remove(handler_ref h) noexcept {
  std::shared_ptr<const detail::installed_handler> gone;  // destroyed without the lock
  std::unique_lock lock(shared_lock_);
  const std::size_t at = std::size_t{h.number} - added_base;
  if (at < added_.size()) gone = std::move(added_[at]);
  lock.unlock();
}

std::shared_ptr<const detail::installed_handler> service::handler_of(call_number number) {
  std::shared_lock lock(shared_lock_);
  const bool was_added = number >= added_base;
  const auto& all = was_added ? added_ : handlers_;
  const std::size_t at = std::size_t{number} - (was_added ? added_base : handler_base);
  return at < all.size() ? all[at] : nullptr;
}

long service::call_handler(service_thread& t, const request& q, bool& later) {
  const auto handler = handler_of(q.call.number);
  if (!handler) return -ENOSYS;
  if (!has_spans(*handler, q.call)) return -EFAULT;
  if (handler->run_deferred) {
    const long result = call_deferred(t, q, *handler);
    later = result == parked;
    return result;
  }
  if (handler->quick) {
    bool threw = false;
    const long result = run_handler(*handler, q.call, threw);
    if (threw) count(t.counts.thrown);
    return result;
  }
  auto* place = waiting_.get() + std::size_t{q.call.slot} * sizeof(waiting_call);
  auto& w = *::new (place) waiting_call(*this, q, nullptr, {});
  under_way(q).fetch_add(1, std::memory_order_acq_rel);
  w.handler = handler;
  w.act = [](job& self, turn how) {
    auto& c = static_cast<waiting_call&>(self);
    service& s = *c.owner;
    bool threw = false;
    const long result =
        how == turn::stopped ? -ESHUTDOWN : s.run_handler(*c.handler, c.made.call, threw);
    const double ns = static_cast<double>(now_ticks() - c.made.taken) * s.ns_per_tick_;
    if (threw) {
      std::lock_guard lock(s.waiting_lock_);
      count(s.waiting_counts_.thrown);
    }
    s.end_waiting(c, result, static_cast<std::uint64_t>(ns));
  };
  const long result = waits_or(w, handler_workers_.submit(w));
  later = result == parked;
  return result;
}

/// Hands the call to a handler that replies to it later, and may do so before this returns.
long service::call_deferred(service_thread& t, const request& q,
                            const detail::installed_handler& h) {
  auto* place = waiting_.get() + std::size_t{q.call.slot} * sizeof(waiting_call);
  auto& w = *::new (place) waiting_call(*this, q, nullptr, {});
  under_way(q).fetch_add(1, std::memory_order_acq_rel);
  std::optional<deferred_reply> reply;
  try {
    reply = deferred_->open(w);
  } catch (const std::bad_alloc&) {
    return waits_or(w, -ENOMEM);
  }
  if (!reply) return waits_or(w, -ESHUTDOWN);
  count(t.counts.waited);
  try {
    h.run_deferred(std::move(*reply), q.call.argument);
  } catch (...) {  // the reply went with it
    count(t.counts.thrown);
  }
  return parked;
}

/// Whether the bytes that a call names lie in the arena, where they travelled to.
bool service::has_spans(const detail::installed_handler& h, const call_record& c) const {
  const auto begin = reinterpret_cast<std::uint64_t>(arena_.data());
  for (unsigned i = 0; i + 1 < max_arguments; ++i) {
    if ((h.spans >> i & 1) == 0) continue;
    const std::uint64_t at = c.argument[i] - begin, bytes = c.argument[i + 1];
    if (bytes != 0 && (at >= arena_.bytes() || bytes > arena_.bytes() - at)) return false;
  }
  return true;
}

long service::run_handler(const detail::installed_handler& h, const call_record& c, bool& threw) {
  try {
    return h.run(c.argument);
  } catch (const std::system_error& e) {
    threw = true;
    const auto& kind = e.code().category();
    const bool is_errno = kind == std::generic_category() || kind == std::system_category();
    return is_errno && e.code().value() > 0 ? -e.code().value() : -EIO;
  } catch (...) {
    threw = true;
    return -EIO;
  }
}

}  // namespace grosr::sys
