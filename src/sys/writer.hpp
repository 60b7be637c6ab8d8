// Text on its way to a descriptor. Whoever has it does not wait for the reader.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace grosr::sys {

/// Writes what it is given, in that order, on a thread of its own.
class writer {
 public:
  static constexpr std::uint64_t most = 16 << 20;  ///< bytes that may wait

  /// `to` stays the program's, and open. Negative: nothing is given to it.
  explicit writer(int to);

  /// Writes what waits, until the moment that give_up_after() chose.
  ~writer();
  writer(const writer&) = delete;

  /// Never waits. Callers ask has_room() before; of those who do not, what is more than twice
  /// `most` is lost, and counted. Any thread.
  void put(std::string_view text);

  bool has_room() const { return waiting() < most; }

  /// Returns when there is room, or after a millisecond.
  void await_room();

  std::uint64_t given() const { return given_.load(std::memory_order_relaxed); }  ///< bytes
  /// Bytes that were written, or given up.
  std::uint64_t written() const { return written_.load(std::memory_order_acquire); }
  std::uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

  /// From that moment on (now_ns()) text whose reader does not read is lost, and counted.
  void give_up_after(std::uint64_t ns) { give_up_ns_.store(ns, std::memory_order_relaxed); }

 private:
  /// Bytes that are given and not written. The bytes that were written are read first: they were
  /// given before.
  std::uint64_t waiting() const {
    const std::uint64_t before = written();
    return given() - before;
  }
  void run();
  std::size_t write_out(std::string_view text) const;

  const int to_;
  std::mutex lock_;  ///< of waiting_ and ending_
  std::condition_variable given_some_, wrote_some_;
  std::string waiting_;
  bool ending_ = false;
  std::atomic<std::uint64_t> given_{0}, written_{0}, lost_{0}, give_up_ns_{~std::uint64_t{0}};
  std::thread thread_;
};

}  // namespace grosr::sys
