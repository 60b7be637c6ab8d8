// Text that kernels print: formatted when its record is taken, so that it stays in order, and
// written afterwards, so that a slow reader does not hold up a shard.
#include "grosr/sys/print.hpp"

#include <errno.h>
#include <fmt/args.h>
#include <fmt/format.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "sys/service.hpp"

namespace grosr::sys {
namespace {

constexpr std::size_t most_waiting = 16 << 20;  // bytes that may wait to be written

std::uint64_t word_at(std::uint64_t at, std::uint64_t i) {
  std::uint64_t word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(at + 8 * i), sizeof word);
  return word;
}

std::uint64_t count_of(const call_record& c) { return word_at(c.argument[1], 0) & 0xffffffff; }

/// Text of `word >> 32` bytes at an argument.
std::string_view text_of(const call_record& c, std::uint64_t argument, std::uint64_t word) {
  const std::uint64_t at = c.argument[argument % max_arguments];
  return at == 0 ? "(null)" : std::string_view(reinterpret_cast<const char*>(at), word >> 32);
}

std::string formatted(const call_record& c) {
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  for (std::uint64_t i = 0; i < count_of(c); ++i) {
    const std::uint64_t word = word_at(c.argument[1], 2 + 2 * i);
    switch (static_cast<printed>(word_at(c.argument[1], 1 + 2 * i))) {
      case printed::integer:
        values.push_back(static_cast<std::int64_t>(word));
        break;
      case printed::natural:
        values.push_back(word);
        break;
      case printed::real:
        values.push_back(std::bit_cast<double>(word));
        break;
      case printed::character:
        values.push_back(static_cast<char>(word));
        break;
      case printed::boolean:
        values.push_back(word != 0);
        break;
      case printed::pointer:
        values.push_back(reinterpret_cast<const void*>(word));
        break;
      case printed::text:
        values.push_back(std::string(text_of(c, word & 0xffffffff, word)));
        break;
    }
  }
  const std::string_view format = text_of(c, 0, word_at(c.argument[1], 0));
  try {
    return fmt::vformat(format, values);
  } catch (const std::exception& e) {  // fmt's, or there is no memory for so wide a field
    return fmt::format("{} [print: {}]\n", format, e.what());
  }
}

}  // namespace

/// Under the lock of the shard.
void service::print(const call_record& c) {
  if (!may_use(c.argument[0], 1) || !may_use(c.argument[1], 8) ||
      !may_use(c.argument[1], 8 + 16 * count_of(c)))
    return;
  const std::string text = formatted(c);
  bool full = false;
  {
    std::lock_guard lock(print_lock_);
    printed_ += text;
    printed_bytes_ += text.size();
    full = printed_.size() > most_waiting;
  }
  if (full) write_printed(true);
}

/// How much of it was written: all, unless there is no writing to that descriptor, or its reader
/// does not read while the server ends.
std::size_t service::write_out(const std::string& text) {
  std::size_t at = 0;
  while (at < text.size()) {
    pollfd p{options_.print_to, POLLOUT, 0};
    if (::poll(&p, 1, 100) == 0) {
      if (now_ns() > give_up_ns_.load(std::memory_order_relaxed)) break;
      continue;
    }
    // What a pipe that is ready takes without waiting.
    const ssize_t n = ::write(options_.print_to, text.data() + at,
                              std::min<std::size_t>(text.size() - at, PIPE_BUF));
    if (n < 0 && errno != EINTR && errno != EAGAIN) break;
    if (n > 0) at += static_cast<std::size_t>(n);
  }
  return at;
}

/// Writes what was printed; who finds another thread at it leaves it to that one, unless `all` has
/// to be written.
void service::write_printed(bool all) {
  const no_pipe_signal here;  // may be the destructor's thread
  for (;;) {
    std::unique_lock writing(write_lock_, std::defer_lock);
    if (all)
      writing.lock();
    else if (!writing.try_lock())
      return;
    std::string text;
    {
      std::lock_guard lock(print_lock_);
      text.swap(printed_);
    }
    if (text.empty()) {
      writing.unlock();
      std::lock_guard lock(print_lock_);  // somebody may have left text to this thread just now
      if (printed_.empty()) return;
      continue;
    }
    unwritten_.fetch_add(text.size() - write_out(text));
    written_bytes_.fetch_add(text.size(), std::memory_order_release);
  }
}

}  // namespace grosr::sys
