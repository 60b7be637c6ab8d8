// Handlers that reply later: no thread waits with them for what they wait for.
//
//   struct next_message {  // called on the service thread that took the call
//     static constexpr std::uint16_t number = 4;
//     messages* from;
//     void operator()(grosr::sys::deferred_reply reply, std::span<char> to) const {
//       from->give_next_to(std::move(reply), to);  // which replies when there is one
//     }
//   };
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace grosr::sys {

class deferred_calls;

/// A call that its handler has not replied to yet. Movable, and used by one thread at a time. It
/// may outlive the server: the call has ended then, as at server.stop().
class deferred_reply {
 public:
  deferred_reply() = default;  ///< of no call: one that has ended
  deferred_reply(deferred_reply&& other) noexcept
      : of_(std::exchange(other.of_, nullptr)), number_(other.number_) {}
  deferred_reply& operator=(deferred_reply&& other) noexcept {
    deferred_reply moved(std::move(other));
    std::swap(of_, moved.of_);
    std::swap(number_, moved.number_);
    return *this;
  }
  /// Without a reply the call ends with -ECANCELED.
  ~deferred_reply() {
    if (of_ != nullptr) drop();
  }

  /// Ends the call. False: it had ended before.
  bool reply(long result) noexcept;

  /// Calls f() while the call does not end; false, and it is not called: it has ended. What the
  /// handler was given as a std::span is used here, and nowhere else once the handler has returned.
  /// f() is short, and neither throws nor replies.
  template <class F>
  bool use(F&& f) noexcept {
    return use([](void* g) { (*static_cast<std::remove_reference_t<F>*>(g))(); }, &f);
  }

  /// Whether somebody waits for the reply: false when the call has ended, or when the runtime whose
  /// task awaits it was lost.
  bool is_awaited() const noexcept;

 private:
  friend class deferred_calls;
  deferred_reply(deferred_calls* of, std::uint64_t number) : of_(of), number_(number) {}
  bool use(void (*f)(void*), void* with) noexcept;
  void drop() noexcept;

  deferred_calls* of_ = nullptr;  // counted there
  std::uint64_t number_ = 0;
};

}  // namespace grosr::sys
