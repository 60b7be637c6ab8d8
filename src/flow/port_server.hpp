// What serves an end of a channel to other processes: a thread, and what it knows of each client.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "flow/channel_end.hpp"
#include "flow/port_name.hpp"
#include "flow/port_thread.hpp"
#include "grosr/flow/shared_port.hpp"

namespace grosr::flow {

/// Nothing that comes from a client is believed: of what lies in shared memory only elements are
/// read, and which slots a client has, only the server knows.
class shared_port::server {
 public:
  server(port_side side, channel_end end, const std::string& name, const shared_port_options& o);
  ~server();

  shared_port_stats stats() const;
  std::string why_ended() const;

 private:
  struct pushed {
    unsigned slot;
    std::size_t count;
  };
  struct client {
    client(owned_descriptor s, port_memory m, unsigned slots, bool has_all)
        : socket(std::move(s)), memory(std::move(m)), has(slots, has_all) {}
    owned_descriptor socket;
    port_memory memory;
    std::vector<bool> has;  // slots that the client has
    std::deque<pushed> pushes;
    bool wants = false;  // it is in wants_, too
    bool gone = false;   // nothing comes from it any more
  };
  /// A block between a slot and the channel.
  struct in_hand {
    datablock block;
    client* of = nullptr;  // of a source: who pushed it; null: it has been expelled
    unsigned slot = 0;
  };

  void work();
  void sleep();
  void move_blocks();
  void take_from_clients();
  bool take_next();
  void give_to_clients();
  void put_back();
  void let_in();
  void let_in(owned_descriptor socket);
  void read_from(client& c);
  void handle(client& c, const port_message& m);
  void cancel(client& c);
  void leave(client& c);
  void expel(client& c, const std::string& why);
  void forget_who_left();
  void end(errc code, const std::string& why);
  port_welcome make_welcome() const;
  std::size_t slot_bytes() const;
  template <class F>
  void count(const F& f);

  const port_side side_;
  const channel_end end_;
  const std::string name_;
  const shared_port_options options_;
  std::optional<port_name> name_held_;

  mutable std::mutex mutex_;  // of these
  shared_port_stats stats_;
  std::string why_ended_;

  // The thread's own.
  std::vector<std::unique_ptr<client>> clients_;
  std::size_t turn_ = 0;       // of a source: whose block is next
  std::deque<client*> wants_;  // of a sink: who waits, in the order in which they came
  in_hand hand_;
  bool lacks_descriptors_ = false;  // nobody can be let in for a while
  port_thread thread_;
};

}  // namespace grosr::flow
