#include "sys/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "grosr/sys/numbers.hpp"
#include "sys/linux_calls.hpp"

namespace grosr::sys {
namespace {

std::string name_of_kind(unsigned kind) {
  if (kind < thread_counts::linux_calls) {
    const linux_call* c = find_linux_call(kind);
    return c != nullptr ? std::string(c->name) : fmt::format("system call {}", kind);
  }
  kind -= thread_counts::linux_calls;
  if (kind < thread_counts::handlers) return fmt::format("handler {}", kind);
  kind -= thread_counts::handlers;
  return kind == 0 ? "nothing" : kind == 1 ? "print" : "unknown";
}

}  // namespace

unsigned thread_counts::kind_of(unsigned number) {
  if (number < handler_base) return std::min(number, linux_calls - 1);
  if (number < own_base)
    return linux_calls + std::min<unsigned>(number - handler_base, handlers - 1);
  return linux_calls + handlers + std::min<unsigned>(number - own_base, own - 1);
}

void thread_counts::add(unsigned number, std::uint64_t n, std::uint64_t errors, std::uint64_t bytes,
                        std::uint64_t ns) {
  const unsigned kind = kind_of(number);
  if (!counts_[kind]) {
    counts_[kind] = std::make_unique<call_counts>();
    __atomic_store_n(&seen_[kind], counts_[kind].get(), __ATOMIC_RELEASE);
  }
  call_counts& c = *counts_[kind];
  count(c.calls, n);
  count(c.errors, errors);
  count(c.bytes, bytes);
  count(c.ns, ns * n);
  const auto log = static_cast<unsigned>(std::bit_width(ns | 1) - 1);
  count(c.latency[std::min<unsigned>(log, 39)], n);
}

void thread_counts::sum(statistics& s) const {
  s.batches += read_count(batches);
  s.denied += read_count(denied);
  s.sleeps += read_count(sleeps);
  s.waited += read_count(waited);
  s.thrown += read_count(thrown);
  for (unsigned kind = 0; kind < kinds; ++kind) {
    const call_counts* c = __atomic_load_n(&seen_[kind], __ATOMIC_ACQUIRE);
    if (c == nullptr) continue;
    const std::string name = name_of_kind(kind);
    auto at = std::find_if(s.calls.begin(), s.calls.end(),
                           [&](const call_statistics& k) { return k.name == name; });
    if (at == s.calls.end()) {
      s.calls.push_back({});
      at = s.calls.end() - 1;
      at->name = name;
    }
    at->calls += read_count(c->calls);
    at->errors += read_count(c->errors);
    at->bytes += read_count(c->bytes);
    at->seconds += static_cast<double>(read_count(c->ns)) / 1e9;
    for (std::size_t i = 0; i < c->latency.size(); ++i) at->latency[i] += read_count(c->latency[i]);
  }
}

}  // namespace grosr::sys
