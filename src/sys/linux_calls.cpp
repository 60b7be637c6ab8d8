#include "sys/linux_calls.hpp"

#include <sys/syscall.h>

#include <algorithm>

namespace grosr::sys {
namespace {

consteval linux_call make(std::string_view name, unsigned number, usefulness useful, group in,
                          waiting waits, std::string_view tokens, std::string_view note) {
  const argument_list list = parse_arguments(tokens);
  bool has_path = false;
  for (unsigned i = 0; i < list.count; ++i) has_path |= list.at[i].kind == argument_kind::path;
  return {name, number, useful, in, waits, list.at, list.count, has_path, note};
}

consteval auto sorted(auto all) {
  std::ranges::sort(all, {}, &linux_call::number);
  return all;
}

constexpr auto calls = sorted(std::to_array<linux_call>({
#define GROSR_LINUX_CALL(name, useful, in, waits, arguments, note) \
  make(#name, __NR_##name, usefulness::useful, group::in, waiting::waits, arguments, note),
#include "sys/linux_calls.def"
}));

// By number: the place in `calls` plus one, 0 where there is no call.
constexpr auto places = [] {
  std::array<std::uint16_t, calls.back().number + 1> table{};
  for (std::size_t i = 0; i < calls.size(); ++i)
    table[calls[i].number] = static_cast<std::uint16_t>(i + 1);
  return table;
}();

}  // namespace

std::span<const linux_call> linux_calls() { return calls; }

const linux_call* find_linux_call(unsigned number) {
  if (number >= places.size() || places[number] == 0) return nullptr;
  return &calls[places[number] - 1u];
}

std::uint64_t bytes_moved(const linux_call* c, long result) {
  if (result <= 0 || c == nullptr) return 0;
  const bool counts =
      std::any_of(c->arguments.begin(), c->arguments.begin() + c->count, [](const argument& a) {
        return a.kind == argument_kind::input_bytes || a.kind == argument_kind::output_bytes;
      });
  return counts ? static_cast<std::uint64_t>(result) : 0;
}

std::string_view name_of(usefulness u) {
  switch (u) {
    case usefulness::useful:
      return "useful";
    case usefulness::raw:
      return "raw";
    case usefulness::not_today:
      return "not today";
    case usefulness::not_useful:
      return "not useful";
  }
  return "?";
}

std::string_view name_of(group g) {
  switch (g) {
    case group::files:
      return "files";
    case group::network:
      return "network";
    case group::memory:
      return "memory";
    case group::time:
      return "time";
    case group::identity:
      return "identity";
    case group::process:
      return "process";
    case group::system:
      return "system";
    case group::other:
      return "other";
  }
  return "?";
}

std::string_view name_of(waiting w) {
  switch (w) {
    case waiting::never:
      return "never";
    case waiting::disk:
      return "disk";
    case waiting::peer:
      return "peer";
    case waiting::other:
      return "other";
  }
  return "?";
}

std::string_view name_of(argument_kind k) {
  switch (k) {
    case argument_kind::value:
      return "value";
    case argument_kind::descriptor:
      return "descriptor";
    case argument_kind::folder:
      return "folder";
    case argument_kind::path:
      return "path";
    case argument_kind::text:
      return "text";
    case argument_kind::input_bytes:
      return "input bytes";
    case argument_kind::output_bytes:
      return "output bytes";
    case argument_kind::input:
      return "input";
    case argument_kind::output:
      return "output";
    case argument_kind::both:
      return "both";
    case argument_kind::read_iovecs:
      return "read iovecs";
    case argument_kind::fill_iovecs:
      return "fill iovecs";
    case argument_kind::sized:
      return "sized";
    case argument_kind::array:
      return "array";
    case argument_kind::pointer:
      return "pointer";
  }
  return "?";
}

}  // namespace grosr::sys
