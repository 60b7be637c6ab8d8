// Calls whose handlers reply later.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "grosr/sys/deferred.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {

/// Those of one server, by number; replies name them so, because a call that has ended leaves its
/// place to another one. Lives as long as the server or one of the replies.
class deferred_calls {
 public:
  explicit deferred_calls(service& of) : owner_(&of) {}
  deferred_calls(const deferred_calls&) = delete;

  /// The reply that a call now waits for; none: the server is stopped.
  std::optional<deferred_reply> open(service::waiting_call& w);
  /// Ends all that wait, and refuses others from now on.
  void end_all(long result);
  void let_go() noexcept;

  bool reply(std::uint64_t number, long result);
  bool use(std::uint64_t number, void (*f)(void*), void* with);
  bool is_awaited(std::uint64_t number);

 private:
  ~deferred_calls() = default;

  std::mutex mutex_;  // of all below; a call ends with it held, so that the server is there
  service* owner_;    // null: it is stopped
  std::unordered_map<std::uint64_t, service::waiting_call*> open_;
  std::uint64_t last_ = 0;
  std::atomic<std::uint32_t> users_{1};  // the server, and replies
};

}  // namespace grosr::sys
