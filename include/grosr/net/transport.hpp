// How the processes that have a world together exchange bytes. docs/internals/messages.md, "Between
// processes".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "grosr/run/options.hpp"
#include "grosr/simt/owner.hpp"

namespace grosr::net {

/// What one world has of a transport. All members throw error(stopped) from when a process cannot
/// be reached, or gave up.
class connection {
 public:
  /// Bytes of a packet, at most.
  static constexpr std::size_t most_packet = 128 * 1024;
  struct packet {
    std::uint32_t from;
    std::span<const std::byte> bytes;  ///< none: nothing has come
  };

  virtual ~connection() = default;

  // ---- packets: for one thread ----
  /// Where the next packet to a process is written, of most_packet bytes; null while the one before
  /// is under way. So there is never more than one.
  virtual std::byte* to_fill(std::uint32_t process) = 0;
  virtual void send(std::uint32_t process, std::size_t bytes) = 0;
  /// What came next, whoever sent it: valid until the next call. Packets of a process come in
  /// order.
  virtual packet receive() = 0;

  // ---- for one other thread ----
  /// Called by all processes: has what each of them said, by number. Sleeps while it waits. Throws
  /// error(timed_out) that names the processes that have not come in time; the connection has
  /// failed then.
  virtual std::vector<std::string> gather(const std::string& mine, run::deadline until) = 0;

  // ---- for any thread ----
  /// Has all members throw, with this text.
  virtual void give_up(const std::string& why) noexcept = 0;
  /// Throws if it has failed.
  virtual void check() const = 0;
};

/// The processes of a job.
class transport {
 public:
  virtual ~transport() = default;
  virtual std::uint32_t process() const = 0;    ///< the number of this one
  virtual std::uint32_t processes() const = 0;  ///< how many there are
  /// For a world. In the same order in all processes.
  virtual simt::owner<connection> connect() = 0;
};

/// A pause of a thread that looks for what comes: short at first, 200 us in the end.
class nap {
 public:
  void reset() { turns_ = 0; }
  void take();

 private:
  unsigned turns_ = 0;
};

}  // namespace grosr::net
