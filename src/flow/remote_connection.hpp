// What remote sources and sinks, and the slots that they give out, share: a socket and memory.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "flow/port_wire.hpp"
#include "grosr/flow/remote_port.hpp"

namespace grosr::flow {

/// Thread-safe. Of the threads that wait, one at a time sleeps on the socket and serves all.
class remote_connection {
 public:
  /// Throws as remote_source().
  remote_connection(port_side side, port_place place, const element_type& as,
                    const std::string& name, const remote_port_options& options);
  ~remote_connection();

  struct taken {
    unsigned slot;
    std::size_t count;
  };
  /// Waits for a free slot of a source, or for a block of a sink. None: not until then.
  std::optional<taken> take(port_clock::time_point until);
  /// Throws error(invalid_option) for a count that the template does not have.
  void check_count(std::size_t count) const;
  void push(unsigned slot, std::size_t count);
  /// A slot that was taken is not needed any more.
  void give_back(unsigned slot) noexcept;

  std::byte* at(unsigned slot) const { return memory_.data() + slot * slot_bytes_; }
  const device& where() const { return memory_.where(); }
  const block_template& shape() const { return *shape_; }
  const std::string& name() const { return name_; }

 private:
  using lock_type = std::unique_lock<std::mutex>;
  struct reason {
    errc code;
    std::string text;
  };

  bool welcome(const std::string& folder, const element_type& as,
               const remote_port_options& options, port_clock::time_point until);
  void check(const port_welcome& w, const element_type& as, const remote_port_options& o);
  device find_device(const port_welcome& w) const;
  template <class Ready>
  bool wait_until(lock_type& lock, port_clock::time_point until, const Ready& ready);
  std::optional<taken> take_free(lock_type& lock, port_clock::time_point until);
  std::optional<taken> take_block(lock_type& lock, port_clock::time_point until);
  void receive();
  void take(const port_message& m);
  void send(const port_message& m);
  void throw_if_over() const;
  std::string at_port() const;

  const port_side side_;
  const port_place place_;
  const std::string name_;
  const std::chrono::nanoseconds patience_;  // for an answer that the server owes
  owned_descriptor socket_;
  owned_descriptor given_back_;  // an eventfd, for the thread that sleeps on the socket
  port_peer server_{};
  simt::shareable_memory memory_;
  std::size_t slot_bytes_ = 0;
  std::optional<block_template> shape_;

  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<bool> free_;  // slots that the program does not have: of a source, to write into
  bool reads_ = false;      // a thread sleeps on the socket
  bool asks_ = false;       // a thread has sent a want
  bool answered_ = false;   // and this is the answer to it
  std::optional<taken> answer_;
  std::optional<reason> over_;
};

}  // namespace grosr::flow
