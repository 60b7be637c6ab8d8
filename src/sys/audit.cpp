// The audit log: a line a call, when it has ended.
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <string.h>

#include <chrono>

#include "sys/service.hpp"

namespace grosr::sys {
namespace {

using text = fmt::memory_buffer;

void append_quoted(text& line, const char* path) {
  line.push_back('"');
  for (; *path != 0; ++path) {
    const auto c = static_cast<unsigned char>(*path);
    if (c == '"' || c == '\\')
      fmt::format_to(std::back_inserter(line), "\\{}", *path);
    else if (c < ' ' || c == 0x7f)
      fmt::format_to(std::back_inserter(line), "\\x{:02x}", c);
    else
      line.push_back(*path);
  }
  line.push_back('"');
}

void append_word(text& line, std::uint64_t word) {
  const auto number = static_cast<std::int64_t>(word);
  if (number >= -0x80000000ll && number <= 0xffffffffll)
    fmt::format_to(std::back_inserter(line), "{}", number);
  else
    fmt::format_to(std::back_inserter(line), "{:#x}", word);
}

bool is_pointer(argument_kind kind) {
  return kind != argument_kind::value && kind != argument_kind::descriptor &&
         kind != argument_kind::folder;
}

}  // namespace

/// `t`: the thread that made the call, which has its paths, and has them no longer after; null:
/// some other.
void service::note(service_thread* t, const call_record& c, long result) {
  const auto now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  text line;
  fmt::format_to(std::back_inserter(line), "{:%Y-%m-%dT%H:%M:%S}.{:06}Z ", fmt::gmtime(now),
                 now.time_since_epoch().count() % 1'000'000);
  const linux_call* info = c.number < handler_base ? find_linux_call(c.number) : nullptr;
  const auto name = [&]() -> std::string {
    if (info != nullptr) return std::string(info->name);
    if (c.number < handler_base) return fmt::format("system_call_{}", c.number);
    if (c.number >= added_base) return fmt::format("added_{}", c.number - added_base);
    if (is_handler(c.number)) return fmt::format("handler_{}", c.number - handler_base);
    return c.number == call_print ? "print" : "unknown";
  };
  fmt::format_to(std::back_inserter(line), "{}(", name());
  const unsigned count = info != nullptr ? info->count : c.number == call_print ? 0 : max_arguments;
  unsigned paths = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (i != 0) line.append(std::string_view(", "));
    const argument_kind kind = info != nullptr ? info->arguments[i].kind : argument_kind::value;
    // What was resolved, which is not what a kernel may have written there since.
    char* path = nullptr;
    if (kind == argument_kind::path && t != nullptr && paths < t->path.size())
      path = t->path[paths++].data();
    if (kind == argument_kind::text && t != nullptr && info->has_path) path = t->path[1].data();
    if (path != nullptr && *path != 0) {
      append_quoted(line, path);
    } else if (is_pointer(kind)) {
      fmt::format_to(std::back_inserter(line), "{:#x}", c.argument[i]);
    } else {
      append_word(line, c.argument[i]);
    }
  }
  const bool is_errno = result < 0 && !is_handler(c.number);
  const char* const problem = is_errno ? ::strerrorname_np(static_cast<int>(-result)) : nullptr;
  if (problem != nullptr)
    fmt::format_to(std::back_inserter(line), ") = -{}\n", problem);
  else
    fmt::format_to(std::back_inserter(line), ") = {}\n", result);
  audit_.put({line.data(), line.size()});
  if (t != nullptr) t->path[0][0] = t->path[1][0] = 0;
}

}  // namespace grosr::sys
