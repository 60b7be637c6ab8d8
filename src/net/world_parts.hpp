// What a world_core has; its members are in world_core.cpp, world_arrays.cpp and
// world_quiescence.cpp.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

#include "grosr/net/detail/map_part.hpp"
#include "grosr/net/detail/world_core.hpp"
#include "grosr/net/transport.hpp"
#include "net/bridge.hpp"
#include "net/collectives.hpp"

namespace grosr::net {

/// Memory of one rank.
struct rank_memory {
  simt::buffer<rank_state> state;
  simt::buffer<link_sender> out;
  simt::buffer<link_receiver> in;
  simt::buffer<std::uint64_t> freed;    // of `out`
  simt::buffer<std::uint32_t> stored;   // of `out`
  simt::buffer<simt::bus_word> words;   // of `in`
  simt::buffer<std::uint64_t> arrived;  // places of chunks of `in`
  simt::buffer<array_part> arrays;

  std::size_t bytes() const {
    return state.bytes() + out.bytes() + in.bytes() + freed.bytes() + words.bytes() +
           stored.bytes() + arrived.bytes() + arrays.bytes();
  }
};

struct array_memory {
  layout shape;
  std::uint32_t element_bytes = 0;  // 0: there is none of this number
  std::vector<simt::buffer<unsigned char>> parts;
};

struct world_core::parts {
  std::vector<rank_options> ranks;  // of this process
  world_options options;
  job all;
  simt::owner<connection> others;
  std::vector<rank_memory> memory;
  std::vector<array_memory> arrays;
  // Once ranks were aborted: a task may go on for a while, and write there.
  bool keeps_arrays = false;
  std::vector<array_memory> kept;
  simt::owner<bridge> away;  // links to ranks of other processes
  collectives with;
  mutable std::mutex collective_lock;
  // Of the reports: whether somebody waits.
  mutable std::mutex wait_lock;
  mutable std::condition_variable wait_ended;
  mutable bool waits = false;
  simt::buffer<rank_report> reports;  // of the ranks of this process
  std::mutex told_lock;
  std::uint64_t refused_told = 0;

  std::uint32_t size() const { return all.ranks(); }
  std::uint32_t first() const { return all.first_here(); }
  std::uint32_t here() const { return all.ranks_here(); }
  /// Collective operations are made one at a time.
  std::unique_lock<std::mutex> one_at_a_time() const {
    return others ? std::unique_lock(collective_lock) : std::unique_lock<std::mutex>();
  }
  run::deadline soon() const {
    return std::chrono::steady_clock::now() + options.collective_within;
  }
  void check() const;
  void join(const std::string& types);
  void compare(std::vector<said> found, const std::string& types);
  void allocate();
  void connect();
  link_sender sender(std::uint32_t rank, std::uint32_t other, std::uint32_t by) const;
  link_receiver receiver(std::uint32_t rank, std::uint32_t other, std::uint32_t by) const;
  void tell(std::uint32_t number, std::uint32_t rank, const array_part& part);
  void forget(std::uint32_t number) noexcept;
  const array_memory& holds(std::uint32_t number, std::uint64_t first, std::uint64_t count) const;
  void part(std::uint32_t number, std::uint32_t rank, void* to, const void* from,
            std::uint64_t count) const;
  map_header map_of(std::uint32_t number, std::uint32_t rank) const;
  rank_stats stats_of(std::uint32_t i) const;
  rank_report report_of(std::uint32_t i) const;
  bool wait_alone(run::deadline until) const;
  void end_wait() const;
  template <class What>
  void alike(collective which, What&& what);
  bool rest_all(const waiting& how, run::deadline until) const;
};

/// Does something in all processes, or all throw.
template <class What>
void world_core::parts::alike(collective which, What&& what) {
  if (!others) return what();
  auto hold = one_at_a_time();
  std::exception_ptr failed;
  try {
    what();
  } catch (...) {
    failed = std::current_exception();
  }
  with.agree(which, failed, soon());
}

template <class T>
std::vector<T> copy_of(const simt::buffer<T>& b) {
  std::vector<T> all(b.size());
  b.copy_to(all);
  return all;
}

}  // namespace grosr::net
