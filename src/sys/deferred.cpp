#include "sys/deferred.hpp"

#include <errno.h>

#include <utility>

namespace grosr::sys {

std::optional<deferred_reply> deferred_calls::open(service::waiting_call& w) {
  std::lock_guard lock(mutex_);
  if (owner_ == nullptr) return std::nullopt;
  const std::uint64_t number = ++last_;
  open_.emplace(number, &w);
  users_.fetch_add(1, std::memory_order_relaxed);
  return deferred_reply(this, number);
}

void deferred_calls::end_all(long result) {
  queue::completion_batch together;
  std::lock_guard lock(mutex_);
  for (const auto& [number, w] : open_) owner_->end_waiting(*w, result);
  open_.clear();
  owner_ = nullptr;
}

void service::lets_go::operator()(deferred_calls* all) const noexcept { all->let_go(); }

void deferred_calls::let_go() noexcept {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

bool deferred_calls::reply(std::uint64_t number, long result) {
  std::lock_guard lock(mutex_);
  const auto found = open_.find(number);
  if (found == open_.end()) return false;
  service::waiting_call& w = *found->second;
  open_.erase(found);
  owner_->end_waiting(w, result);
  return true;
}

bool deferred_calls::use(std::uint64_t number, void (*f)(void*), void* with) {
  std::lock_guard lock(mutex_);
  if (!open_.contains(number)) return false;
  f(with);
  return true;
}

bool deferred_calls::is_awaited(std::uint64_t number) {
  std::lock_guard lock(mutex_);
  const auto found = open_.find(number);
  if (found == open_.end()) return false;
  const call_record& c = found->second->made.call;
  return (c.flags & flag_awaited) == 0 || queue::is_open(c.target);
}

bool deferred_reply::reply(long result) noexcept {
  if (of_ == nullptr) return false;
  deferred_calls* const of = std::exchange(of_, nullptr);
  const bool waited = of->reply(number_, result);
  of->let_go();
  return waited;
}

bool deferred_reply::use(void (*f)(void*), void* with) noexcept {
  return of_ != nullptr && of_->use(number_, f, with);
}

bool deferred_reply::is_awaited() const noexcept {
  return of_ != nullptr && of_->is_awaited(number_);
}

void deferred_reply::drop() noexcept { reply(-ECANCELED); }

}  // namespace grosr::sys
