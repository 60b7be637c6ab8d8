// Links between ranks of this process and of others: a ring here and its twin there, and the thread
// that keeps them alike. docs/internals/messages.md, "Between processes".
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "grosr/net/detail/link.hpp"
#include "grosr/net/transport.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr::net {

/// Which ranks are where.
struct job {
  std::uint32_t process = 0;
  std::vector<std::uint32_t> first;  ///< rank of each process, and in the end how many there are

  std::uint32_t processes() const { return static_cast<std::uint32_t>(first.size()) - 1; }
  std::uint32_t ranks() const { return first.back(); }
  std::uint32_t first_here() const { return first[process]; }
  std::uint32_t ranks_here() const { return first[process + 1] - first_here(); }
  bool is_here(std::uint32_t rank) const { return rank - first_here() < ranks_here(); }
  std::uint32_t process_of(std::uint32_t rank) const;
};

class bridge {
 public:
  /// `devices`: of the ranks of this process. Throws error(out_of_memory).
  bridge(const job& all, const std::vector<device>& devices, std::uint32_t link_words,
         connection& to);
  ~bridge();

  /// Of the link from rank `mine` of this process to rank `other` of another one: its ring, and
  /// what was given back of it.
  simt::bus_word* words_out(std::uint32_t mine, std::uint32_t other, std::uint32_t by) const;
  std::uint64_t* freed_out(std::uint32_t mine, std::uint32_t other, std::uint32_t by) const;
  /// The same of the link from `other` to `mine`.
  simt::bus_word* words_in(std::uint32_t mine, std::uint32_t other, std::uint32_t by) const;
  std::uint64_t* freed_in(std::uint32_t mine, std::uint32_t other, std::uint32_t by) const;
  /// Says where chunks for rank `mine` are announced.
  void lead_to(std::uint32_t mine, std::uint32_t by, arrivals& to) const;
  /// Words given back of what `mine` sent to other processes.
  std::uint64_t words_back(std::uint32_t mine) const;
  std::size_t bytes() const;  ///< of pinned memory

  /// `doorbells`: of the ranks of this process, in memory of their devices.
  void start(std::vector<std::uint32_t*> doorbells);
  /// Has the other processes give up, and this one.
  void tell(const std::string& why);

 private:
  struct end {
    device where;
    simt::buffer<simt::bus_word> out, in;
    simt::buffer<std::uint64_t> freed_out, freed_in;
    /// Places, what was taken of them (arrivals::far_taken), and how many were filled.
    simt::buffer<std::uint64_t> arrived, taken, arrived_count;
  };
  /// A link as the thread sees it: both directions between two ranks, of one class.
  struct pair {
    std::uint32_t mine, other, by;  // ranks, class
    simt::bus_word *out, *in;
    std::uint64_t *freed_out, *freed_in;
    std::uint64_t sent = 0, back = 0;      // chunks of `out`: sent, and given back
    std::uint64_t came = 0, returned = 0;  // chunks of `in`: received, and said to be free
  };
  struct record;

  std::size_t index(std::uint32_t other, std::uint32_t by) const;
  void work();
  bool take_in();
  bool take(std::uint32_t from, std::span<const std::byte> packet);
  bool send_to(std::uint32_t process);
  std::size_t fill(std::uint32_t process, std::byte* packet);
  bool next_chunk(const pair& p, simt::bus_word* to) const;
  void announce(const pair& p, std::uint64_t chunk);
  pair* find(std::uint32_t mine, std::uint32_t other, std::uint32_t by);
  void ring(std::uint32_t mine);
  void say_why();

  job all_;
  std::uint32_t link_words_, chunks_, shift_;
  std::uint32_t places_;  // of chunks of one class, for a rank of this process
  connection& to_;
  std::vector<end> ends_;
  std::vector<std::vector<pair>> pairs_;  // by process
  std::vector<std::uint32_t> turn_;       // by process: the pair that is looked at first
  std::vector<std::uint32_t*> doorbells_;
  std::atomic<bool> stop_{false};
  std::mutex why_lock_;
  std::string why_;
  std::thread thread_;
};

}  // namespace grosr::net
