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
#include "grosr/simt/timeline.hpp"

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
    client(owned_descriptor s, simt::shareable_memory m, unsigned slots, bool has_all)
        : socket(std::move(s)), memory(std::move(m)), has(slots, has_all) {}
    owned_descriptor socket;
    simt::shareable_memory memory;
    std::vector<bool> has;  // slots that the client has
    std::deque<pushed> pushes;
    bool wants = false;  // it is in wants_, or its block is being copied
    bool gone = false;   // nothing comes from it any more
  };
  /// A block between a slot and the channel.
  struct in_hand {
    datablock block;       // of a source, when the channel has it: none
    client* of = nullptr;  // whose slot it is; null: it has been expelled
    unsigned slot = 0;
    simt::stream_point copied;
  };

  void work();
  void sleep();
  void move_blocks();
  void take_from_clients();
  bool take_next();
  void give_to_clients();
  void copy_into_block(in_hand& b, std::size_t elements);
  void copy_into_slot(in_hand& b);
  void see_to_copied();
  void free_slot(const in_hand& b);
  void hand_over(in_hand b);
  void put_back();
  void put_back_untaken();
  bool is_being_copied(const client& c) const;
  bool sees_copy_end();
  void end_copies() noexcept;
  void let_in();
  void let_in(owned_descriptor socket);
  void read_from(client& c);
  void handle(client& c, const port_message& m);
  void cancel(client& c);
  void leave(client& c);
  void expel(client& c, const std::string& why);
  void forget_who_left();
  void end(errc code, const std::string& why);
  void end_for(const error& e);
  port_welcome make_welcome() const;
  std::size_t slot_bytes() const;
  std::byte* at(const in_hand& b) const { return b.of->memory.data() + b.slot * slot_bytes(); }
  template <class F>
  void count(const F& f);

  const port_side side_;
  const channel_end end_;
  const std::string name_;
  const shared_port_options options_;
  // Of the device on which slots lie.
  space_number space_ = host_space;
  simt::device_identity slots_are_on_;
  std::optional<port_name> name_held_;

  mutable std::mutex mutex_;  // of these
  shared_port_stats stats_;
  std::string why_ended_;

  // The thread's own.
  std::vector<std::unique_ptr<client>> clients_;
  std::size_t turn_ = 0;       // of a source: whose block is next
  std::deque<client*> wants_;  // of a sink: who waits, in the order in which they came
  in_hand hand_;
  std::deque<in_hand> copied_;            // whose copies have begun; of a device in one stream, so
                                          // they end in this order
  std::deque<datablock> untaken_;         // of a sink: go back together, to keep their order
  std::optional<simt::timeline> copies_;  // on the device of the slots
  bool lacks_descriptors_ = false;        // nobody can be let in for a while
  port_thread thread_;
};

}  // namespace grosr::flow
