// Ports that another process of the machine shares: blocks are pushed into its graph and pulled
// from it.
//
//   flow::remote_source<float> frames("frames");
//   frames.push(picture);
//   flow::remote_sink<std::uint32_t> counts("counts");
//   std::uint32_t n = counts.pull()[0];
//
// grosr/flow/shared_port.hpp has what the serving process does.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grosr/flow/block_template.hpp"
#include "grosr/simt/device.hpp"

namespace grosr::simt {
class moment;
class stream;
}  // namespace grosr::simt

namespace grosr::flow {

class remote_connection;

struct remote_port_options {
  /// How long the constructor waits until the name is served and the server has answered; and how
  /// long try_pull() and pull_for() wait beyond their limit for an answer that the server owes.
  std::chrono::nanoseconds connect_within = std::chrono::seconds(5);
  /// What the port's template must be. None: any of the elements.
  std::optional<block_template> shape = {};
  /// Users, by their number, whose servers are trusted. None: the own user alone.
  std::optional<std::vector<std::uint32_t>> users = {};
  std::string folder = {};  ///< as shared_port_options::folder
};

/// A slot of the memory that is shared with a port's server, which this process has until the end
/// of the object. Movable. It keeps the connection.
class remote_slot {
 public:
  remote_slot() = default;
  remote_slot(remote_slot&& o) noexcept { *this = std::move(o); }
  remote_slot& operator=(remote_slot&& o) noexcept;
  ~remote_slot();

  explicit operator bool() const { return of_ != nullptr; }
  std::size_t size() const { return count_; }  ///< elements

 protected:
  friend class remote_port;
  void push(std::size_t count);
  void push_after(const simt::moment& when, std::size_t count);
  void release_after(const simt::moment& when);

  std::shared_ptr<remote_connection> of_;
  unsigned number_ = 0;
  void* data_ = nullptr;
  std::size_t count_ = 0;
};

/// A block of a sink.
template <class T>
class remote_read : public remote_slot {
 public:
  const T* data() const { return static_cast<const T*>(data_); }
  const T& operator[](std::size_t i) const { return data()[i]; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + count_; }
  operator std::span<const T>() const { return {data(), count_}; }
};

/// A block that is being made for a source. Its end without push() leaves the slot for others.
template <class T>
class remote_write : public remote_slot {
 public:
  T* data() const { return static_cast<T*>(data_); }
  T& operator[](std::size_t i) const { return data()[i]; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  operator std::span<T>() const { return {data(), count_}; }

  /// Gives it to the server, with all elements or the first ones; the object is empty then. Throws
  /// as remote_source::push(), and error(misuse) when it is empty.
  void push() { remote_slot::push(count_); }
  void push(std::size_t count) { remote_slot::push(count); }
};

/// What remote sources and sinks have in common.
class remote_port {
 public:
  const block_template& shape() const;
  const std::string& name() const;

 protected:
  enum class side : std::uint8_t { source, sink };
  enum class place : std::uint8_t { host, device };  // of slots
  using limit = std::optional<std::chrono::nanoseconds>;
  remote_port(side s, place p, const element_type& as, const std::string& name,
              const remote_port_options& options);
  void take(remote_slot& to, limit l) const;
  bool push_bytes(const void* elements, std::size_t count, limit l) const;
  bool push_from_device(simt::stream& s, const void* elements, std::size_t count, limit l) const;
  const device& device_of_slots() const;

 private:
  side side_;
  std::shared_ptr<remote_connection> to_;
};

/// Pushes blocks into a graph of another process, by slots in host memory. Thread-safe. All
/// functions throw, with the port's name, error(task_failed, stopped) when the graph has ended,
/// with the server's reason, and error(stopped) when the server has gone.
template <class T>
class remote_source : public remote_port {
 public:
  /// Connects. Throws error(timed_out) when nobody serves the name in time; error(misuse) where the
  /// server does not let this process in, or its user is not trusted; error(invalid_option) for
  /// another template, which it names with T, a sink, slots in memory of a device, and a name that
  /// is no name; error(bad_input)
  /// for a server that speaks otherwise; error(out_of_memory).
  explicit remote_source(const std::string& name, const remote_port_options& options = {})
      : remote_port(side::source, place::host, element_type::of<T>(), name, options) {
    static_assert(alignof(T) <= 256, "grosr: slots of shared memory begin at multiples of 256");
  }

  /// Copies the elements into a slot, and gives it to the server, which puts them into the channel
  /// when that has room. Waits while no slot is free. Throws error(invalid_option) unless it is as
  /// many elements as the template has, or fewer where that is variable.
  void push(std::span<const T> elements) const {
    push_bytes(elements.data(), elements.size(), std::nullopt);
  }
  /// As push(), but returns false at once when no slot is free.
  bool try_push(std::span<const T> elements) const {
    return push_for(elements, std::chrono::nanoseconds(0));
  }
  /// As push(), but returns false when no slot is free after `l`.
  bool push_for(std::span<const T> elements, std::chrono::nanoseconds l) const {
    return push_bytes(elements.data(), elements.size(), l);
  }

  /// A slot to write in place. Waits while none is free.
  remote_write<T> write() const { return write(std::nullopt); }
  /// Empty when none is free.
  remote_write<T> try_write() const { return write(std::chrono::nanoseconds(0)); }
  /// Empty when none is free after `l`.
  remote_write<T> write_for(std::chrono::nanoseconds l) const { return write(l); }

 private:
  remote_write<T> write(limit l) const {
    remote_write<T> w;
    take(w, l);
    return w;
  }
};

/// Pulls blocks from a graph of another process. Thread-safe. Throws as remote_source.
template <class T>
class remote_sink : public remote_port {
 public:
  explicit remote_sink(const std::string& name, const remote_port_options& options = {})
      : remote_port(side::sink, place::host, element_type::of<T>(), name, options) {
    static_assert(alignof(T) <= 256, "grosr: slots of shared memory begin at multiples of 256");
  }

  /// Waits for a block. It lies in shared memory, and has a slot until the end of the object: while
  /// this process has all slots, it gets no other block.
  remote_read<T> pull() const { return pull(std::nullopt); }
  /// Empty when there is none; a message goes to the server and back. Where the server does not
  /// answer, the connection ends with error(timed_out), as it does in pull_for().
  remote_read<T> try_pull() const { return pull(std::chrono::nanoseconds(0)); }
  /// Empty when there is none after `l`.
  remote_read<T> pull_for(std::chrono::nanoseconds l) const { return pull(l); }

 private:
  remote_read<T> pull(limit l) const {
    remote_read<T> r;
    take(r, l);
    return r;
  }
};

}  // namespace grosr::flow
