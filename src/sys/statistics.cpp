#include "sys/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <new>
#include <numeric>

#include "grosr/sys/numbers.hpp"
#include "sys/linux_calls.hpp"

namespace grosr::sys {
namespace {

std::string name_of_kind(unsigned kind) {
  const auto name = [](const char* what, unsigned number, unsigned kinds) {
    return fmt::format(number + 1 == kinds ? fmt::runtime("{}s from {}") : fmt::runtime("{} {}"),
                       what, number);  // the last one counts all that follow
  };
  if (kind < thread_counts::linux_calls) {
    const linux_call* c = find_linux_call(kind);
    return c != nullptr ? std::string(c->name)
                        : name("system call", kind, thread_counts::linux_calls);
  }
  kind -= thread_counts::linux_calls;
  if (kind < thread_counts::handlers) return name("handler", kind, thread_counts::handlers);
  kind -= thread_counts::handlers;
  return kind == 0 ? "nothing" : kind == 1 ? "print" : "unknown";
}

}  // namespace

unsigned thread_counts::kind_of(unsigned number) {
  if (number < handler_base) return std::min(number, linux_calls - 1);
  if (is_handler(number))
    return linux_calls + std::min<unsigned>(number - handler_base, handlers - 1);
  return linux_calls + handlers + std::min<unsigned>(number - own_base, own - 1);
}

void thread_counts::add(unsigned number, std::uint64_t n, std::uint64_t errors, std::uint64_t bytes,
                        std::uint64_t ns) {
  const unsigned kind = kind_of(number);
  if (!counts_[kind]) {
    counts_[kind].reset(new (std::nothrow) call_counts());
    if (!counts_[kind]) return;  // a call is worth more than its count
    __atomic_store_n(&seen_[kind], counts_[kind].get(), __ATOMIC_RELEASE);
  }
  call_counts& c = *counts_[kind];
  count(c.calls, n);
  count(c.errors, errors);
  count(c.bytes, bytes);
  if (ns == not_timed) return;
  count(c.ns, ns * n);
  const auto log = static_cast<unsigned>(std::bit_width(ns | 1) - 1);
  count(c.latency[std::min<unsigned>(log, 39)], n);
}

void thread_counts::sum(statistics& s) const {
  s.batches += read_count(batches);
  s.denied += read_count(denied);
  s.sleeps += read_count(sleeps);
  s.waited += read_count(waited);
  s.by_ring += read_count(ring);
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

std::uint64_t call_statistics::timed() const {
  return std::accumulate(latency.begin(), latency.end(), std::uint64_t{0});
}

double call_statistics::within_ns(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(static_cast<double>(timed()) * share));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < latency.size(); ++i) {
    seen += latency[i];
    if (latency[i] != 0 && seen >= wanted) return std::ldexp(1.0, static_cast<int>(i) + 1);
  }
  return 0;
}

std::string to_json(const statistics& s) {
  std::string text = "{\"calls\": [";
  for (const call_statistics& c : s.calls) {
    std::string bins;
    for (std::size_t i = 0; i < c.latency.size(); ++i)
      if (c.latency[i] != 0)
        bins += fmt::format("{}\"{}\": {}", bins.empty() ? "" : ", ", i, c.latency[i]);
    text += fmt::format(
        "{}{{\"name\": \"{}\", \"calls\": {}, \"errors\": {}, \"bytes\": {}, \"seconds\": {:.9f}, "
        "\"p50_ns\": {:.0f}, \"p99_ns\": {:.0f}, \"latency_log2_ns\": {{{}}}}}",
        &c == s.calls.data() ? "" : ", ", c.name, c.calls, c.errors, c.bytes, c.seconds,
        c.within_ns(0.5), c.within_ns(0.99), bins);
  }
  return text +
         fmt::format(
             "], \"batches\": {}, \"denied\": {}, \"sleeps\": {}, \"waited\": {}, "
             "\"by_ring\": {}, \"thrown\": {}, \"unwritten_bytes\": {}, \"unaudited_bytes\": {}, "
             "\"device_memory_bytes\": {}, \"host_memory_bytes\": {}}}",
             s.batches, s.denied, s.sleeps, s.waited, s.by_ring, s.thrown, s.unwritten, s.unaudited,
             s.device_memory, s.host_memory);
}

}  // namespace grosr::sys
