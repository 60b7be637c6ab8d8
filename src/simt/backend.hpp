// What a backend gives to device.cpp, buffer.cpp and stream.cpp. cuda_backend has two
// implementations: *_cuda.cpp, and backend_nocuda.cpp in builds without CUDA.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/doorbell.hpp"
#include "grosr/simt/launch.hpp"
#include "grosr/simt/stream_graph.hpp"
#include "grosr/simt/stream_order.hpp"
#include "grosr/simt/timeline.hpp"

namespace grosr::simt {

/// A queue of kernels: what is behind a `stream`.
class stream_backend {
 public:
  virtual ~stream_backend() = default;
  virtual bool done() = 0;
  virtual void wait() = 0;
  virtual void* native() { return nullptr; }
  virtual std::vector<std::string> waits(std::chrono::nanoseconds) { return {}; }
  virtual std::vector<long> threads() { return {}; }
  virtual void launch_host(host::launch_shape shape, std::function<void()> kernel);
  virtual void call_host(std::function<void()> function);
};

/// What is behind a stream_order.
class stream_order_backend {
 public:
  virtual ~stream_order_backend() = default;
  virtual bool store_at(const moment& when, std::uint32_t* word, std::uint32_t value) = 0;
  virtual void wait_for(const any_stream& s, const std::uint32_t* word, std::uint32_t value) = 0;
};

/// What is behind a timeline: marks in its stream, each with the number of a place. Thread-safe.
class timeline_backend {
 public:
  virtual ~timeline_backend() = default;
  /// Behind what the stream holds now. Numbers rise.
  virtual void mark(std::uint64_t number) = 0;
  /// The greatest number of a mark that has been come to.
  virtual std::uint64_t reached() = 0;
  /// Whether what was put before that place is known to have failed. Where errors are thrown as
  /// they are found, never.
  virtual bool failed(std::uint64_t) { return false; }
  /// Until a mark of that number or a greater one, which there is, has been come to.
  virtual void wait(std::uint64_t number) = 0;
  /// The same for what is put into another stream from now on.
  virtual void hold(stream& other, std::uint64_t number) = 0;
  /// Behind what the stream holds now.
  virtual std::shared_ptr<stream_time::place> time() = 0;
};

/// Copies that are put into a stream together: so many, and so many bytes, are begun without
/// waiting for more.
inline constexpr std::size_t most_copies = 128, most_bytes = std::size_t{8} << 20;

/// Copies between pinned memory and that of one device. Bytes.
struct copies {
  std::vector<void*> to;
  std::vector<const void*> from;
  std::vector<std::size_t> bytes;
  std::size_t all_bytes = 0;

  bool empty() const { return bytes.empty(); }
  void add(void* t, const void* f, std::size_t n) {
    to.push_back(t);
    from.push_back(f);
    bytes.push_back(n);
    all_bytes += n;
  }
  void reserve(std::size_t n) {
    to.reserve(n);
    from.reserve(n);
    bytes.reserve(n);
  }
  void clear() {
    to.clear();
    from.clear();
    bytes.clear();
    all_bytes = 0;
  }
  /// Whether a copy has to come behind one of these.
  bool hold_up(const void* t, const void* f, std::size_t n) const {
    const auto overlap = [](const void* a, std::size_t m, const void* b, std::size_t k) {
      const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
      return x < y + k && y < x + m;
    };
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (overlap(to[i], bytes[i], f, n) || overlap(to[i], bytes[i], t, n) ||
          overlap(from[i], bytes[i], t, n))
        return true;
    return false;
  }
};

/// Puts a kernel into a stream that makes these copies; none is longer than 4 GB.
void launch_copies(stream& s, const copies& all);
/// So that its first launch waits for nothing.
void load_copies(const device& d);

/// What is behind a stream_graph.
class stream_graph_backend {
 public:
  virtual ~stream_graph_backend() = default;
  virtual bool add(std::span<const unsigned> after, const stream_graph::part& p) = 0;
  virtual bool finish() = 0;
  virtual bool replace(std::span<const unsigned> numbers, const stream_graph::numbered_part& p) = 0;
  virtual void launch(stream& s) = 0;
};

/// What is behind a doorbell on a GPU.
class doorbell_backend {
 public:
  virtual ~doorbell_backend() = default;
  /// Has a stream say that the round is armed, wait until it is rung, and set `woken`. Returns at
  /// once.
  virtual void arm(std::uint32_t round) = 0;
  virtual bool is_armed(std::uint32_t round) const = 0;
  /// Rings the round that is armed, from the host. Thread-safe.
  virtual void release() = 0;
  std::uint32_t woken = 0;  ///< the newest round that is over; sleepers wait on it
};

namespace host {
void sleep_while(std::uint32_t* word, std::uint32_t is, std::chrono::nanoseconds limit);
}

namespace cuda_backend {
int device_count(std::string& why_none);  ///< `why_none` is set when there are none
device_properties properties(int index);
std::string pci_address(int index);  ///< empty: not known
void* allocate(device d, space s, std::size_t bytes);
void release(device d, space s, void* p) noexcept;
void copy(device d, void* to, const void* from, std::size_t bytes);
/// What is behind a shareable_memory.
struct shared_allocation {
  void* data;
  int file;
};
std::array<std::uint8_t, 16> uuid(int index);
shared_allocation make_shareable(device d, std::size_t bytes);
void* map_shareable(device d, int file, std::size_t bytes);  ///< null: it is no such file
void unmap_shareable(device d, void* p, std::size_t bytes) noexcept;
std::unique_ptr<stream_backend> make_stream(device d);
std::unique_ptr<doorbell_backend> make_doorbell(device d, std::uint32_t* armed, std::uint32_t* word,
                                                std::function<void()> on_ring);
std::unique_ptr<stream_order_backend> make_stream_order(device d);
std::unique_ptr<timeline_backend> make_timeline(stream& s);
std::unique_ptr<stream_graph_backend> make_stream_graph(const device& d);
void queue_copy(stream& s, void* to, const void* from, std::size_t bytes);
/// Several, in no order among themselves: of pinned memory, and of the stream's device.
void queue_copies(stream& s, const copies& all);
void check_order(device d, CUstream_st* s, const std::string& asked);
void check_event(device d, CUevent_st* e, const std::string& asked);
void wait_for(device d, const moment& when);
void wait_for_kernels(device d) noexcept;
int make_current(int index);  ///< the GPU that was current before; -1: that one
void make_current_again(int before) noexcept;
void launch(const device& d, void* stream, shape grid, const void* entry, const void* kernel);
kernel_fit fit(const device& d, const void* entry, unsigned threads);
std::size_t reserve_stack(const device& d, std::size_t bytes);
}  // namespace cuda_backend

namespace host_backend {
int device_count();
device_properties properties();
std::size_t memory();  ///< of the machine, bytes; properties() asks for much more
std::unique_ptr<stream_backend> make_stream();
void wait_for_kernels() noexcept;
}  // namespace host_backend

}  // namespace grosr::simt
