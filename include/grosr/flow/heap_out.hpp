// An output whose memory the function allocates, on the device, when it knows how much it needs.
//
//   struct unpack {  // in one thread block: a node of on_stream launches it
//     flow::in<record> packed;
//     flow::heap_out<float> values;
//     GROSR_DEVICE void operator()() const {
//       if (simt::thread_id() == 0) values.allocate(length_of(packed));
//       simt::sync_block();
//       float* const to = values.data();
//       if (to == nullptr) return;  // no room: the node fails
//       ...
//
//   flow::graph graph(where, {.heap_bytes = std::size_t{64} << 20});
#pragma once

#include "grosr/alloc/heap_ref.hpp"
#include "grosr/flow/port_view.hpp"

namespace grosr::flow {

/// What a run has allocated for an output. All 0 when it begins.
struct heap_descriptor {
  void* data;
  std::uint64_t count;  ///< elements that the first call asked for
  std::uint32_t calls;
  std::uint32_t unused;
};

/// An output of a kernel or on_stream node: the function allocates its block from the graph's heap
/// on the device (graph_options::heap_bytes), and writes all of it. Its template is variable and
/// says how many elements there may be; so much memory is not reserved. Outputs of such a node go
/// on when the device has come to the end of its run.
template <class T>
class heap_out {
 public:
  using element = T;
  /// Blocks begin at a multiple of so many bytes.
  static constexpr std::size_t alignment = 256;

  heap_out() = default;
  /// `heap` is a heap_ref, `descriptor` is in memory of its device.
  heap_out(const void* heap, void* descriptor, std::size_t most)
      : heap_(*static_cast<const heap_ref*>(heap)),
        descriptor_(static_cast<heap_descriptor*>(descriptor)),
        most_(most) {}

  /// Memory for `n` elements, which hold anything. Any lane of any kernel of the function calls it,
  /// once a run. Null for 0; also for more than most(), where the heap has no room, and for a
  /// second call: then the node fails when its run is over. When nobody has called it, the block
  /// has no elements.
  GROSR_DEVICE T* allocate(std::size_t n) const {
    heap_descriptor& d = *descriptor_;
    if (simt::atomic_ref<std::uint32_t>(d.calls).fetch_add(1, simt::relaxed) != 0) return nullptr;
    d.count = n;
    if (n <= most_) d.data = heap_.allocate(n * sizeof(T), alignment);
    return static_cast<T*>(d.data);
  }

  /// What allocate() returned, and how many elements it was asked for; null and 0 before it. For
  /// threads that have met the caller since (sync_block), and for kernels behind its own.
  GROSR_DEVICE T* data() const { return static_cast<T*>(descriptor_->data); }
  GROSR_DEVICE std::size_t count() const { return descriptor_->count; }

  /// Elements of the template.
  GROSR_DEVICE std::size_t most() const { return most_; }

 private:
  heap_ref heap_;
  heap_descriptor* descriptor_ = nullptr;
  std::size_t most_ = 0;
};

}  // namespace grosr::flow
