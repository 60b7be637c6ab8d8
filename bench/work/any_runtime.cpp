#include "work/any_runtime.hpp"

#include <fmt/format.h>

#include "cli/text.hpp"

namespace grosr::tool {
namespace {

std::chrono::nanoseconds slice(const device& d) {
  return d.is_cuda() ? std::chrono::nanoseconds(0) : std::chrono::milliseconds(50);
}

}  // namespace

void await(any_runtime& r) {
  while (!r.wait_all_for(slice(r.where()))) progress::pulse();
}

void await(const any_runtime& r, const ticket& t) {
  while (!t.wait_for(slice(r.where()))) progress::pulse();
}

void await(const any_runtime& r, const std::vector<ticket>& all) {
  for (const ticket& t : all) await(r, t);
}

runtime_stats settled_stats(any_runtime& r) {
  r.park();
  return r.stats();
}

std::string trouble(const any_runtime& r, const runtime_stats& s, std::size_t memory_limit) {
  if (s.failed + s.rejected != 0) {
    const auto errors = r.errors();
    return fmt::format(
        "{} tasks failed and {} found no room{}", s.failed, s.rejected,
        errors.empty() ? ""
                       : fmt::format("; the first is {}, code {}", errors[0].type, errors[0].code));
  }
  if (s.memory > memory_limit)
    return fmt::format("task memory is {}, over its limit of {}",
                       with_unit("bytes", static_cast<double>(s.memory)),
                       with_unit("bytes", static_cast<double>(memory_limit)));
  return "";
}

runtime_options usual_options(const device& d) {
  runtime_options o;
  o.idle_timeout = std::chrono::microseconds(0);
  if (!d.is_cuda()) o.memory_limit = std::size_t{32} << 20;
  return o;
}

}  // namespace grosr::tool
