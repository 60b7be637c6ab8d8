// Calls without a wrapper: any Linux call by its number, handlers of the program, nothing at all.
#pragma once

#include <span>
#include <utility>

#include "grosr/sys/carried.hpp"
#include "grosr/sys/deferred.hpp"

namespace grosr::sys {
namespace detail {

/// Whether a handler that takes a P can be passed an A.
template <class P, class A>
struct passes {
  static constexpr bool value =
      !is_carried<A> &&
      (std::is_same_v<P, A> || (!std::is_floating_point_v<P> && !std::is_floating_point_v<A>));
};
template <class T, class U, travel How>
struct passes<std::span<T>, carried<U, How>> {
  static constexpr bool value =
      std::is_same_v<std::remove_const_t<T>, U> &&
      (std::is_const_v<T> ? How != travel::from_server : How != travel::to_server);
};
template <class T, class A>
struct passes<std::span<T>, A> {
  static constexpr bool value = false;
};

template <class... P>
struct taken {
  template <class... A>
  static constexpr bool all() {
    if constexpr (sizeof...(P) == sizeof...(A))
      return (passes<P, A>::value && ...);
    else
      return false;
  }
};
template <class R, class C, class... P>
taken<std::remove_cvref_t<P>...> taken_by(R (C::*)(deferred_reply, P...));
template <class R, class C, class... P>
taken<std::remove_cvref_t<P>...> taken_by(R (C::*)(deferred_reply, P...) const);
template <class R, class C, class... P>
taken<std::remove_cvref_t<P>...> taken_by(R (C::*)(P...));
template <class R, class C, class... P>
taken<std::remove_cvref_t<P>...> taken_by(R (C::*)(P...) const);

/// Whether the handler's function takes these; true where it is not known.
template <class Handler, class... A>
constexpr bool takes() {
  if constexpr (requires { taken_by(&Handler::operator()); })
    return decltype(taken_by(&Handler::operator()))::template all<A...>();
  else
    return true;
}

}  // namespace detail

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
/// arguments: values of at most 8 bytes, and objects that are carried (sent, filled, exchanged),
/// each of which counts as two. What it returns; -ENOSYS: not installed; if it throws a
/// std::system_error, that one's errno, else -EIO. -EMSGSIZE: more than piece_bytes are carried;
/// -EFAULT: null, with a count.
template <class Handler, class Caller, class... Arguments>
GROSR_DEVICE auto call(const Caller& c, Arguments... arguments) {
  static_assert(Handler::number < own_base - handler_base,
                "grosr: a handler's number is below 16384");
  static_assert(
      ((std::is_pointer_v<Arguments> || std::is_null_pointer_v<Arguments>) || ...) ||
          detail::takes<Handler, Arguments...>(),
      "grosr: these are not the arguments that the handler takes: as many, floating-point "
      "ones of the same type, sent() or exchanged() for a span of const, filled() or "
      "exchanged() for another span");
  return invoke(c, detail::call_of_handler(handler_base + Handler::number, arguments...));
}

/// The same for a handler that the server has added; what it takes is not checked. After
/// server.remove() -ENOSYS.
template <class Caller, class... Arguments>
GROSR_DEVICE auto call(const Caller& c, handler_ref h, Arguments... arguments) {
  return invoke(c, detail::call_of_handler(h.number, arguments...));
}

/// Goes to the server and back. 0.
template <class Caller>
GROSR_DEVICE auto nothing(const Caller& c) {
  return invoke(c, detail::make<0>(call_nothing));
}

}  // namespace grosr::sys
