// What a shared port and its clients say to each other, and the memory that they share.
// docs/internals/dataflow.md has the protocol.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grosr/flow/block_template.hpp"
#include "grosr/simt/error.hpp"
#include "grosr/simt/shareable_memory.hpp"

namespace grosr::flow {

inline constexpr std::uint32_t port_magic = 0x67725054;  // "grPT"
inline constexpr std::uint32_t port_version = 2;
inline constexpr unsigned most_port_slots = 64;
/// Bytes. Slots begin at multiples of it.
inline constexpr std::size_t port_slot_alignment = 256;

enum class port_word : std::uint32_t {
  // from the server
  welcome = 1,  ///< a port_welcome, with the shared memory
  refused,      ///< a port_text: the connection is closed
  ended,        ///< a port_text: the port is
  freed,        ///< a slot that was pushed is the client's again
  block,        ///< a slot that was wanted, and elements in it; the client's until release
  none,         ///< what was wanted has been cancelled
  // from clients
  push = 32,  ///< a slot, and elements in it
  want,       ///< the next block of a sink; one answer: block or none
  cancel,     ///< nothing, if there has been an answer
  release,    ///< a slot
};

/// What every message begins with. Those of clients are nothing else.
struct port_message {
  port_word word = {};
  std::uint32_t slot = 0;   ///< of port_text: an errc
  std::uint64_t count = 0;  ///< elements
};
static_assert(sizeof(port_message) == 16);

struct port_text {
  port_message head;
  char text[1024];
};

/// Which end of a channel a port is.
enum class port_side : std::uint32_t { source = 1, sink };

/// Where slots lie.
enum class port_place : std::uint32_t { host, device };

struct port_welcome {
  port_message head;
  std::uint32_t magic, version;
  port_side side;
  port_place place;
  std::uint32_t device_kind;     ///< a backend; of `place` device
  std::uint8_t device_uuid[16];  ///< likewise
  std::uint32_t slots;
  std::uint64_t slot_bytes;
  std::uint64_t extents[3];
  std::uint32_t element_bytes;
  std::uint32_t element_kind;
  std::uint32_t layout;
  char element_name[1024];
};

/// As the server says it. `name` is its element's. Throws as block_template::of().
block_template template_of(const port_welcome& w, const char* name);

/// Closes it at the end.
class owned_descriptor {
 public:
  explicit owned_descriptor(int fd = -1) : fd_(fd) {}
  owned_descriptor(owned_descriptor&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  owned_descriptor& operator=(owned_descriptor&& o) noexcept {
    std::swap(fd_, o.fd_);
    return *this;
  }
  ~owned_descriptor();

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// From memory of the host, by a call of Linux: others may have punched holes into its file, which
/// an access would have to fill. Throws std::system_error.
void read_shared(const simt::shareable_memory& from, std::size_t at, void* to, std::size_t bytes);

/// Who is at the other end of a socket.
struct port_peer {
  uid_t user;
  pid_t process;
};
port_peer peer_of(int socket);

/// None: the own user alone.
using port_users = std::optional<std::vector<std::uint32_t>>;
bool is_among(const port_users& users, uid_t user);

enum class port_sent : std::uint8_t { yes, full, gone };
/// Sends a message without waiting; `file` goes with it unless it is -1.
port_sent send_message(int socket, const void* message, std::size_t bytes, int file = -1);
/// Sends a port_text, shortened if need be.
void send_text(int socket, port_word word, errc code, const std::string& text);

struct port_received {
  ssize_t bytes = 0;  ///< of the message, all of it; 0: the other end is closed; -1: none yet
  owned_descriptor file;
};
/// Receives a message without waiting. Bytes beyond the room for it are lost. Messages that were
/// sent before the other end closed come first. `takes_file`: else descriptors are closed.
port_received receive_message(int socket, void* to, std::size_t room, bool takes_file = false);

using port_clock = std::chrono::steady_clock;
/// Waits until a descriptor is ready for `events`, or another one to be read (-1: none); false: not
/// until then.
bool wait_for_descriptor(int fd, short events, port_clock::time_point until, int also = -1);

/// Now and so long; none: never.
port_clock::time_point after(std::optional<std::chrono::nanoseconds> limit);

}  // namespace grosr::flow
