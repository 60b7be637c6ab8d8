// Calls without a wrapper: any Linux call by its number, handlers of the program, nothing at all.
#pragma once

#include "grosr/sys/detail/wrap.hpp"

namespace grosr::sys {

/// Makes the Linux call `number`. Arguments are passed as they are: pointers among them must be
/// addresses of the host that the server knows, or the policy must allow others (policy.raw).
/// -ENOSYS: no such call; -EOPNOTSUPP: of no use to a GPU; -ENOTRECOVERABLE: of use, but cannot be
/// done for one today; -EPERM: denied.
template <class Caller, class... Arguments>
GROSR_DEVICE auto syscall(const Caller& c, long number, Arguments... arguments) {
  auto o = detail::make<0>(number, arguments...);
  o.record.flags = 0;
  if (number < 0 || number >= handler_base) o.record.number = handler_base - 1;  // none
  return invoke(c, o);
}

/// Calls the host's function object of type Handler, which the server has installed, with up to six
/// arguments of at most 8 bytes. What it returns; -ENOSYS: not installed; if it throws a
/// std::system_error, that one's errno, else -EIO.
template <class Handler, class Caller, class... Arguments>
GROSR_DEVICE auto call(const Caller& c, Arguments... arguments) {
  static_assert(Handler::number < own_base - handler_base,
                "grosr: a handler's number is below 16384");
  return invoke(c, detail::make<0>(handler_base + Handler::number, arguments...));
}

/// Goes to the server and back. 0.
template <class Caller>
GROSR_DEVICE auto nothing(const Caller& c) {
  return invoke(c, detail::make<0>(call_nothing));
}

}  // namespace grosr::sys
