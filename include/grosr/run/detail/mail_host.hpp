// The host's side of a mailbox, without the types of its requests and answers.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "grosr/run/detail/mail.hpp"
#include "grosr/run/options.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr {

/// Options of a mailbox.
struct mailbox_options {
  std::uint32_t capacity = 64;  ///< requests of the host under way at a time; a power of two
  /// Requests of tasks that wait at a time, a power of two; 0: tasks have none to make.
  std::uint32_t posts = 0;
  /// How long the server waits for a request before it gives its worker back: at most 25 ms, which
  /// a longer one is taken for; 0: 10 ms on GPUs, 0.2 ms on the host.
  std::chrono::microseconds patience{0};
};

namespace run {

[[noreturn]] void throw_request_failed(int status);

/// How a mailbox reaches its runtime.
struct mail_runtime {
  std::function<void(const simt::bus_word&)> start;  ///< submits a server, with its first request
  std::function<bool()> done;                        ///< whether all those have ended
  std::function<void()> check;  ///< throws if the runtime has ended; brings the kernel back
};

/// A request of the host under way, or answered. Shared by the one who asked and the mailbox.
struct mail_request {
  std::uint32_t number = 0;
  simt::bus_word word{};  ///< with the number
  std::chrono::steady_clock::time_point asked;
  std::atomic<bool> answered{false};
  int status = 0;  ///< these two once it is answered
  unsigned char value[max_answer_bytes] = {};
};

/// Thread-safe, all of it, but construction and destruction.
class mail_host {
 public:
  /// Throws error(invalid_option, out_of_memory).
  mail_host(device where, const mailbox_options& o, mail_runtime r);
  mail_host(const mail_host&) = delete;
  /// Waits until all requests are answered and no server is left, or the runtime has ended.
  ~mail_host();

  mail_state* state() const { return state_.data(); }
  std::size_t bytes() const;  ///< device memory

  /// Null: with `attempt`, there was no slot; else `until` passed before there was one.
  std::shared_ptr<mail_request> ask(simt::bus_word w, deadline until, bool attempt);
  bool wait(mail_request& r, deadline until);
  bool answered(mail_request& r);

 private:
  bool collect(std::uint32_t slot);
  bool is_there(const mail_request& r) const;
  std::shared_ptr<mail_request> write(simt::bus_word w, std::uint32_t mark);
  void bring_server(const simt::bus_word& w);
  template <class Ready>
  bool wait_for(const Ready& ready, const mail_request* r, deadline until);

  device where_;
  mail_runtime runtime_;
  simt::buffer<mail_state> state_;
  simt::buffer<simt::bus_word> requests_, answers_;  // pinned
  simt::buffer<std::uint32_t> leaving_;              // pinned
  queue::ring<mail_post> posts_;
  std::uint32_t capacity_;
  bool takes_posts_;

  std::mutex lock_;  // of the two below, and of requests_
  std::uint32_t last_ = 0;
  std::vector<std::shared_ptr<mail_request>> slots_;  // what lies there and is not collected

  std::mutex server_lock_;  // of the two below
  std::chrono::steady_clock::time_point started_;
  std::chrono::nanoseconds pause_{0};
};

}  // namespace run
}  // namespace grosr
