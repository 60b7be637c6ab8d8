// A graph's functions of the host, and the thread that runs them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "grosr/queue/call_ring.hpp"
#include "grosr/run/options.hpp"
#include "grosr/simt/owner.hpp"

namespace grosr::flow {

/// Elements for one function of the host.
using host_batch = std::vector<queue::record>;

/// The thread that runs a graph's functions of the host.
class host_side {
 public:
  host_side(device d, std::uint32_t records);
  ~host_side();

  queue::call_ring_ref records() const { return records_.ref(); }
  /// Before start(): the number of a new function.
  std::uint32_t add(std::function<void(const host_batch&)> f);
  void start();

  /// Elements that functions have served so far.
  std::uint64_t served();
  /// After the device came to rest: waits until what it sent has been served; `now` is served()
  /// then. False when the deadline passed first. Throws what a function threw. Any thread.
  bool settle(run::deadline until, std::uint64_t& now);

  /// Whether a function of the host calls this. It may have to drain() while it waits for the
  /// device, which may wait for it.
  bool inside() const;
  /// Takes what the device sent; how many. The thread that runs functions.
  std::size_t drain();
  static void nap();  ///< 20 us

 private:
  void work();
  void serve();

  queue::call_ring records_;
  std::vector<std::function<void(const host_batch&)>> functions_;
  std::vector<host_batch> waiting_;  ///< by function; of the thread
  struct shared;                     // what the thread shares with others, and itself
  simt::owner<shared> shared_;
};

}  // namespace grosr::flow
