// Submissions that wait for streams of the program, and streams that wait for tickets: what a
// runtime keeps of both, and the thread that looks after them, which starts with the first.
// docs/internals/scheduler.md, "Streams".
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "grosr/run/detail/host_engine.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/stream_order.hpp"

namespace grosr::run {

/// Thread-safe. Shared with what streams of the host hold.
class interop : public std::enable_shared_from_this<interop> {
 public:
  static constexpr std::uint32_t most_deferred = 256;

  /// A submission that waits, or part of one that found no room yet.
  struct deferred {
    unsigned type = 0, level = 0;
    std::uint32_t a_packet = 0, packets = 0;
    std::size_t count = 0, sent = 0;  // tasks
    ticket_id ticket;
    std::vector<std::byte> tasks;
  };

  /// What it asks the runtime that it belongs to. None of it is called under lock_.
  struct owner {
    /// Submits what there is room for: whether that was all.
    std::function<bool(deferred&)> send;
    std::function<void(ticket_id)> fail;  ///< completes a ticket whose tasks will not run
    std::function<bool(ticket_id)> done;
    std::function<void()> come;      ///< has the kernel come, if it is not there or is to leave
    std::function<void(bool)> stay;  ///< has the kernel come and stay, or leave when it is idle
  };

  interop(device d, owner o);
  ~interop();

  /// Has the tasks wait for the moment. `check`, under a lock, throws if nothing is accepted.
  /// Throws error(out_of_memory) when as many wait as can, and as stream_order.
  void submit_at(const simt::moment& when, deferred what, const std::function<void()>& check);
  std::uint64_t last_serial();            ///< of the newest that was accepted
  bool sent_until(std::uint64_t serial);  ///< whether none of those up to it waits

  /// What is put into the stream later waits for the ticket, whose word comes to `value`. False:
  /// the runtime is being lost.
  bool record(const simt::any_stream& s, ticket_id t, std::uint32_t* word, std::uint32_t value);
  /// Does it, unless streams wait for tickets that are not done: for how many.
  std::size_t unless_recorded(const std::function<void()>& what);

  /// The runtime is lost: drops what waits. What streams still wait for: to be stored in its word.
  std::vector<ticket_id> abandon();

  /// Ends the thread. From now on `owner` is not used.
  void close();

  static constexpr std::size_t pinned_bytes() { return most_deferred * sizeof(std::uint32_t); }

 private:
  enum class stage : std::uint8_t { free, arming, waiting, due, sending };
  struct place {
    stage at = stage::free;
    std::uint64_t serial = 0;
    deferred what;
  };
  /// What a stream of the host waits at.
  struct gate {
    std::mutex lock;
    std::condition_variable opened;
    bool open = false;
    void wait();
    void let();
  };
  struct recorded_ticket {
    std::uint64_t number;  // they are in this order
    ticket_id ticket;
    std::shared_ptr<gate> at;  // null on a GPU
  };
  /// What a stream of the host calls, or destroys uncalled.
  struct signal;

  enum : std::uint32_t { not_yet = 0, happened = 1, dropped = 2 };

  std::uint32_t take_place(const std::function<void()>& check);
  void free_place(std::uint32_t p);  // under the lock
  simt::stream_order& order();
  void tell(std::uint32_t p, std::uint32_t what);
  void work();
  bool look(std::unique_lock<std::mutex>& lock);
  bool prune();
  bool prune_locked();
  void start();

  const device device_;
  owner owner_;
  std::once_flag ordered_;
  std::optional<simt::stream_order> order_;  // of a GPU
  simt::buffer<std::uint32_t> words_;        // by place; a stream stores `happened`

  std::mutex lock_;
  std::condition_variable wake_;
  std::vector<place> places_;
  std::vector<recorded_ticket> recorded_;
  std::uint64_t serial_ = 0, records_ = 0,
                news_ = 0;  // news: what the thread has to look at at once
  bool abandoned_ = false, stop_ = false;
  std::thread thread_;

  // A stream that waits may keep a later launch from coming to the device: the kernel stays while
  // some do. Taken before lock_ and the runtime's locks.
  std::mutex stay_lock_;
  bool stays_ = false;
};

}  // namespace grosr::run
