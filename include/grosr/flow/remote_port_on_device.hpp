// Ports that another process shares by slots in memory of a device: blocks that this process makes
// there go into the graph, and out of it, without a copy to the host.
//
//   flow::remote_source_on_device<float> frames("frames");
//   simt::stream stream(frames.where());
//   auto frame = frames.write();
//   simt::launch(stream, {8, 128}, draw{frame.data(), frame.size()});
//   frame.push(stream);
//
// The other process has shared_port_options::slots_on. Only its device and this one's that is the
// same GPU can have the memory. Slots are given away when what streams do with them has happened,
// so calls that take a stream wait for it: a `simt::stream`, a `cudaStream_t`, or a `cudaEvent_t`.
#pragma once

#include "grosr/flow/remote_port.hpp"
#include "grosr/simt/stream_order.hpp"

namespace grosr::flow {

/// A block of a sink, in device memory. At its end the slot goes back: nothing may read it then.
template <class T>
class remote_device_read : public remote_slot {
 public:
  const T* data() const { return static_cast<const T*>(data_); }  ///< for the device

  /// Gives the slot back when all that the stream holds is done, and waits for that; the object is
  /// empty then. Throws as simt::stream::wait(), and error(misuse) when it is empty.
  void release(const simt::moment& when) { release_after(when); }
};

/// A block that is being made for a source, in device memory. Its end without push() leaves the
/// slot for others: nothing may write it then.
template <class T>
class remote_device_write : public remote_slot {
 public:
  T* data() const { return static_cast<T*>(data_); }  ///< for the device

  /// Gives it to the server, with all elements or the first ones, when all that the stream holds is
  /// done, and waits for that; the object is empty then. Throws as simt::stream::wait() and
  /// remote_source::push(), and error(misuse) when it is empty.
  void push(const simt::moment& when) { push_after(when, count_); }
  void push(const simt::moment& when, std::size_t count) { push_after(when, count); }
};

/// Pushes blocks into a graph of another process. Thread-safe. Throws as remote_source.
template <class T>
class remote_source_on_device : public remote_port {
 public:
  /// As remote_source(), and throws error(no_such_device) where this process has not the device,
  /// error(invalid_option) where slots are in host memory.
  explicit remote_source_on_device(const std::string& name, const remote_port_options& options = {})
      : remote_port(side::source, place::device, element_type::of<T>(), name, options) {
    static_assert(alignof(T) <= 256, "grosr: slots of shared memory begin at multiples of 256");
  }

  const device& where() const { return device_of_slots(); }

  /// A slot to write by what is put into streams of the device. Waits while none is free.
  remote_device_write<T> write() const { return write(std::nullopt); }
  /// Empty when none is free.
  remote_device_write<T> try_write() const { return write(std::chrono::nanoseconds(0)); }
  /// Empty when none is free after `l`.
  remote_device_write<T> write_for(std::chrono::nanoseconds l) const { return write(l); }

  /// Copies elements that the device reaches into a slot, by the stream and behind what it holds,
  /// waits for it, and gives the slot to the server. Waits while no slot is free.
  void push(simt::stream& s, const T* elements, std::size_t count) const {
    push_from_device(s, elements, count, std::nullopt);
  }
  /// As push(), but returns false at once when no slot is free, and waits for nothing then.
  bool try_push(simt::stream& s, const T* elements, std::size_t count) const {
    return push_for(s, elements, count, std::chrono::nanoseconds(0));
  }
  /// As push(), but returns false when no slot is free after `l`.
  bool push_for(simt::stream& s, const T* elements, std::size_t count,
                std::chrono::nanoseconds l) const {
    return push_from_device(s, elements, count, l);
  }

 private:
  remote_device_write<T> write(limit l) const {
    remote_device_write<T> w;
    take(w, l);
    return w;
  }
};

/// Pulls blocks from a graph of another process. Thread-safe. Throws as remote_source_on_device.
template <class T>
class remote_sink_on_device : public remote_port {
 public:
  explicit remote_sink_on_device(const std::string& name, const remote_port_options& options = {})
      : remote_port(side::sink, place::device, element_type::of<T>(), name, options) {
    static_assert(alignof(T) <= 256, "grosr: slots of shared memory begin at multiples of 256");
  }

  const device& where() const { return device_of_slots(); }

  /// Waits for a block, whose elements are there for every stream of the device. It has a slot
  /// until its end, or release(): while this process has all slots, it gets no other block.
  remote_device_read<T> pull() const { return pull(std::nullopt); }
  /// Empty when there is none; as remote_sink::try_pull().
  remote_device_read<T> try_pull() const { return pull(std::chrono::nanoseconds(0)); }
  /// Empty when there is none after `l`.
  remote_device_read<T> pull_for(std::chrono::nanoseconds l) const { return pull(l); }

 private:
  remote_device_read<T> pull(limit l) const {
    remote_device_read<T> r;
    take(r, l);
    return r;
  }
};

}  // namespace grosr::flow
