// Linux's system calls and what each means to GPU code, made from linux_calls.def. Nobody owns
// anything: the table is constant.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "sys/linux_arguments.hpp"

namespace grosr::sys {

/// What a call is to GPU code.
enum class usefulness : std::uint8_t {
  useful,      ///< can be made for a GPU thread, and makes sense there
  raw,         ///< the same, with the policy raw alone: the server cannot check it
  not_today,   ///< would make sense, but needs a thread or a signal that a GPU has not
  not_useful,  ///< makes no sense on a GPU, or nowhere any more
};

/// What a policy allows or denies.
enum class group : std::uint8_t { files, network, memory, time, identity, process, system, other };

/// The worst that a call may wait for.
enum class waiting : std::uint8_t {
  never,  ///< does not block
  disk,   ///< the disk only
  peer,   ///< the other end of a descriptor: can be tried without waiting, and watched by epoll
  other,  ///< a lock, the time, another process: needs a thread that waits
};

/// One system call of this architecture.
struct linux_call {
  std::string_view name;
  unsigned number = 0;
  usefulness useful = usefulness::not_useful;
  group in = group::other;
  waiting waits = waiting::never;
  std::array<argument, max_arguments> arguments{};  ///< the first `count` of them
  unsigned count = 0;
  bool has_path = false;
  std::string_view note;  ///< a few words, or empty
};

/// All calls that this program was compiled with, in the order of their numbers.
std::span<const linux_call> linux_calls();

/// The call of that number; null where there is none. Takes constant time.
const linux_call* find_linux_call(unsigned number);

/// What a call's result says of bytes: it counts them where the call is told how many there may be.
/// 0 of others, and of null.
std::uint64_t bytes_moved(const linux_call* c, long result);

/// The name as messages and docs/linux-calls.md have it: "not today", "files", "disk", "output".
std::string_view name_of(usefulness u);
std::string_view name_of(group g);
std::string_view name_of(waiting w);
std::string_view name_of(argument_kind k);

}  // namespace grosr::sys
