// Datablocks: bytes that have views in several memories, which are kept the same for whoever looks.
//
//   flow::block_memory memory({device("cuda:0")});
//   flow::datablock block = memory.make(flow::block_template::of<float>(1024));
//   for (float& x : block.write<float>()) x = 1;                 // in pinned host memory
//   {
//     flow::device_access on = block.update(stream, memory.space_of(device("cuda:0")));
//     simt::launch(stream.queue(), {8, 128}, scale{static_cast<float*>(on.data()), 1024});
//   }                                                            // copied there, once
//   float sum = 0;
//   for (float x : block.read<float>()) sum += x;                // copied back, when asked for
//
// docs/internals/dataflow.md has the rules.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "grosr/flow/block_template.hpp"
#include "grosr/simt/timeline.hpp"

namespace grosr::flow {

class block_heap;
class block_memory;
class block_users;
class datablock;
struct block_state;
struct memory_state;

/// Memories that hold views, of one block_memory: the host's, which is pinned where there are GPUs,
/// and that of each of its devices, from 1 on.
using space_number = unsigned;
inline constexpr space_number host_space = 0;

/// What is done with a block where it is looked at.
enum class access : std::uint8_t {
  read,
  write,   ///< all of it, whatever it held
  update,  ///< both
};

/// What looking at blocks has cost.
struct copy_counts {
  std::uint64_t copies = 0;  ///< that were made
  std::uint64_t bytes = 0;
  std::uint64_t avoided = 0;  ///< views that were there, or were to be written over
  std::uint64_t avoided_bytes = 0;

  copy_counts& operator+=(const copy_counts& o) {
    copies += o.copies;
    bytes += o.bytes;
    avoided += o.avoided;
    avoided_bytes += o.avoided_bytes;
    return *this;
  }
};

/// A copy from one memory to another, and when a stream began and ended it.
struct block_copy {
  space_number to, from;
  std::size_t bytes;
  simt::stream_time begins, ends;
};

/// Who uses a block on a device.
struct stream_user {
  /// Copies that take less time than the calls by which two streams wait for each other.
  static constexpr std::size_t small = 64 * 1024;

  simt::timeline* stream = nullptr;  ///< none: copies go into other streams
  std::size_t copies = small;  ///< the bytes of the longest copy that goes into `stream` itself
  /// Memory that the block gets is the same as last time for that number, if it is free; 0: any.
  std::uint64_t home = 0;
};

/// What a stream, or the host, is to wait for before it uses several blocks.
struct stream_waits {
  simt::stream_points to_come;  ///< what is in the blocks
  simt::stream_points to_end;   ///< what uses memory that is written over, whether it failed or not

  /// Has the stream wait for all of them. Throws as simt::timeline::wait_for(), when all is put.
  void put_into(simt::timeline& t) const;
  /// For the host. These throw as simt::stream_point::wait() and has_happened().
  void wait() const;
  bool have_happened() const;
};

/// A block that is being used by what is put into a stream meanwhile. Movable; its end says that
/// all of that has been put.
class device_access {
 public:
  device_access(device_access&&) noexcept = default;
  device_access& operator=(device_access&&) = delete;
  ~device_access();

  void* data() const { return data_; }

 private:
  friend class datablock;
  friend class block_users;
  device_access(std::shared_ptr<block_state> b, void* data, simt::timeline& t, space_number s,
                access a)
      : block_(std::move(b)), data_(data), stream_(&t), space_(s), how_(a) {}

  std::shared_ptr<block_state> block_;
  void* data_;
  simt::timeline* stream_;
  space_number space_;
  access how_;
};

/// A block that the host uses. Movable.
template <class T>
class host_access {
 public:
  host_access(host_access&&) noexcept = default;
  host_access& operator=(host_access&&) = delete;
  ~host_access();

  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }
  operator std::span<T>() const { return {data_, size_}; }

 private:
  friend class datablock;
  host_access(std::shared_ptr<block_state> b, void* data, std::size_t n, access a)
      : block_(std::move(b)), data_(static_cast<T*>(data)), size_(n), how_(a) {}

  std::shared_ptr<block_state> block_;
  T* data_;
  std::size_t size_;
  access how_;
};

/// A handle: copies name the same block, which lives as long as one of them. Thread-safe, but for
/// assignments to one handle.
class datablock {
 public:
  datablock() = default;

  explicit operator bool() const { return block_ != nullptr; }
  friend bool operator==(const datablock&, const datablock&) = default;

  const block_template& shape() const;
  /// Elements that are there: all of them, or what set_count() said. What a block without elements
  /// is asked throws error(misuse), as all below.
  std::size_t count() const;
  /// Throws error(invalid_option) for more than the template has, and for fewer where it is fixed;
  /// error(misuse) while it is in use.
  void set_count(std::size_t n);
  /// Handles there are, of all threads.
  long use_count() const { return block_.use_count(); }

  /// Gives the host the block's elements; waits until they are in host memory. The block is in use
  /// until the returned object is destroyed. Many may read at once; nobody else may use a block
  /// that is written. read() and update() copy where host memory has no valid view; write() leaves
  /// elements undefined. Throws error(misuse) when others use the block, for a type that the
  /// template does not have, and for reading a block that was never written;
  /// error(out_of_memory, device_lost).
  template <class T>
  host_access<const T> read() const {
    return {block_, on_host(access::read, element_type::of<T>()), count(), access::read};
  }
  template <class T>
  host_access<T> write() const {
    return {block_, on_host(access::write, element_type::of<T>()), count(), access::write};
  }
  template <class T>
  host_access<T> update() const {
    return {block_, on_host(access::update, element_type::of<T>()), count(), access::update};
  }

  /// For what is put into a stream of the device that has the memory `s`, or of any device that
  /// reaches it. Waits for nothing: the stream does, or what it is to wait for is added to `later`.
  /// Adds to `counts` what it took. Throws as above.
  device_access read(simt::timeline& t, space_number s, copy_counts* counts = nullptr,
                     stream_waits* later = nullptr) const {
    return on_device(access::read, {&t}, s, counts, later);
  }
  device_access write(simt::timeline& t, space_number s, copy_counts* counts = nullptr,
                      stream_waits* later = nullptr) const {
    return on_device(access::write, {&t}, s, counts, later);
  }
  device_access update(simt::timeline& t, space_number s, copy_counts* counts = nullptr,
                       stream_waits* later = nullptr) const {
    return on_device(access::update, {&t}, s, counts, later);
  }

  /// Whether the memory has a view that holds what the block does.
  bool is_valid_in(space_number s) const;

 private:
  friend class block_memory;
  friend class block_users;
  explicit datablock(std::shared_ptr<block_state> b) : block_(std::move(b)) {}

  block_state& state() const;
  void* on_host(access a, const element_type& as) const;
  device_access on_device(access a, const stream_user& by, space_number s, copy_counts* counts,
                          stream_waits* later) const;

  std::shared_ptr<block_state> block_;
};

/// Memory for blocks, of the host and of devices: pools of buffers that blocks come from and go
/// back to, and the streams that copy. Thread-safe. Blocks keep what they need of it alive.
class block_memory {
 public:
  /// Throws error(invalid_option) for no devices, more than 62, or the same one twice.
  explicit block_memory(const std::vector<device>& devices);
  /// Waits for streams that use memory of others, and frees that.
  ~block_memory();
  block_memory(const block_memory&) = delete;

  /// A block that holds nothing yet, and takes no memory.
  datablock make(const block_template& shape);

  const std::vector<device>& devices() const;
  /// Throws error(invalid_option) for a device that it was not made for.
  space_number space_of(const device& d) const;

  /// Sees to it that so many more buffers of a size are there, so that nothing is allocated later.
  /// Throws error(out_of_memory), and then has reserved nothing; error(invalid_option) for a memory
  /// that does not exist, as bytes() and idle_buffers() do.
  void reserve(space_number s, std::size_t bytes, std::size_t buffers);
  /// Takes a reservation back and frees idle buffers; ignores a memory that does not exist.
  void unreserve(space_number s, std::size_t bytes, std::size_t buffers) noexcept;
  /// Whether a block came from here. Throws error(misuse) for an empty handle.
  bool made(const datablock& b) const;

  /// Frees memory of others (dlpack.hpp) that blocks have given back, and no stream uses any more:
  /// calls what frees it, without a lock. Executors do that between runs.
  void free_borrowed() noexcept;

  /// Bytes that a memory holds for blocks, in use or not.
  std::size_t bytes(space_number s) const;
  /// Buffers of it that no block has.
  std::size_t idle_buffers(space_number s) const;
  /// Of all blocks: what looking at them has cost.
  copy_counts counts() const;

 private:
  friend class block_users;
  std::shared_ptr<memory_state> state_;
};

/// For those who run functions on blocks.
class block_users {
 public:
  /// As datablock::read() and its kin for a device.
  static device_access on_device(const datablock& b, access a, const stream_user& by,
                                 space_number s, copy_counts* counts, stream_waits& later) {
    return b.on_device(a, by, s, counts, &later);
  }
  /// Ends accesses in one stream, with one point for all: who waits for it waits once.
  static void end_on_device(std::vector<device_access>& all, const simt::stream_point& until);
  /// As datablock::read() and its kin for the host, but waits for nothing: what is to have happened
  /// before the view is used is added to `waits`. end_on_host() is to follow.
  static void* begin_on_host(const datablock& b, access a, stream_waits& waits,
                             copy_counts* counts);
  /// Begins to copy what a block holds to host memory, where it is not there yet; for the thread
  /// that puts work into the stream of `by`, and marks it then. Adds what it took. Throws as
  /// datablock::read().
  static void bring_to_host(const datablock& b, const stream_user& by, copy_counts& counts);
  /// Has each copy told to `f`, on the thread that puts it into a stream. Copies are put there one
  /// by one from then on. Before there are blocks.
  static void tell_copies(block_memory& m, std::function<void(const block_copy&)> f);
  /// Reads a block in a memory until let_go(), by whoever gets the address. Waits until it is
  /// there. `where` is the device that has the memory, or allocated it. Throws as
  /// datablock::read().
  struct held_view {
    void* data;
    device where;
  };
  static held_view hold(const datablock& b, space_number s);
  static void let_go(const datablock& b, space_number s) noexcept;
  /// A block that holds what is at `data` in a memory, which `free(owner)` frees when nobody uses
  /// it any more. Throws error(out_of_memory), and then has not freed it.
  static datablock adopt(block_memory& m, const block_template& shape, space_number s, void* data,
                         void* owner, void (*free)(void*));
  /// A new block, which a function has allocated so many elements for in a heap, on the device of a
  /// memory: null for 0.
  static void take_from(block_heap& h, const datablock& b, space_number s, void* data,
                        std::size_t count);
  /// Whether a memory has a valid view of a block: false until somebody has begun to write it.
  /// Takes no lock.
  static bool is_written(const datablock& b);
  /// Bytes of the elements that a block has. Takes no lock.
  static std::size_t bytes_of(const datablock& b);
  /// A block of as many elements as another one, to hold a copy of these.
  static datablock make_for_copy(block_memory& m, const datablock& of);
  static block_template fixed(const element_type& e, const std::array<std::size_t, 3>& extents) {
    return block_template(block_template::records::fixed, e, extents);
  }
  /// `failed`: what was to be written was not, and the block holds nothing.
  static void end_on_host(const datablock& b, access a, bool failed) noexcept;
};

/// For host_access.
void end_on_host(block_state& b, access a) noexcept;

template <class T>
host_access<T>::~host_access() {
  if (block_) end_on_host(*block_, how_);
}

}  // namespace grosr::flow
