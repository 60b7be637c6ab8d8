// What a function of a graph gets that takes several elements of its channel at a time.
#pragma once

#include "grosr/queue/batch_buffer.hpp"
#include "grosr/run/task.hpp"
#include "grosr/simt/lanes.hpp"

namespace grosr {

namespace flow {

/// Block-shared memory of the warps of a task, while it runs: what they stage packets in otherwise.
/// The first half of each holds places of a batch, the second half is a function's own.
struct scratch {
  static constexpr std::uint32_t places =
      run::stage_bytes / 2 / 4 / simt::warp_size;  ///< by thread
  unsigned char* first;
  std::uint32_t apart, warps;

  /// Where the place of element i is kept; any thread's.
  GROSR_DEVICE std::uint32_t& place(std::uint32_t i) const {
    const std::uint32_t warp = i / simt::warp_size % warps, turn = i / simt::warp_size / warps;
    return reinterpret_cast<std::uint32_t*>(
        first + warp * apart)[turn * simt::warp_size + i % simt::warp_size];
  }
  /// 1 KiB for the function, by warp.
  template <class T>
  GROSR_DEVICE T* own(std::uint32_t warp) const {
    return reinterpret_cast<T*>(first + warp * apart + run::stage_bytes / 2);
  }
};

}  // namespace flow

/// Elements, in no order. Any thread of the task may read any of them, until the function returns.
template <class T>
class batch {
 public:
  /// One that the channel does not hold.
  GROSR_DEVICE batch(const T* one, const flow::scratch& s) : scratch_(s), one_(one), size_(1) {}
  GROSR_DEVICE batch(queue::batch_buffer_ref<T> channel, const flow::scratch& s, std::uint32_t size)
      : channel_(channel), scratch_(s), size_(size) {}

  /// How many, from 1 on.
  GROSR_DEVICE std::uint32_t size() const { return size_; }
  /// Element i, from 0 to size() - 1.
  GROSR_DEVICE T operator[](std::uint32_t i) const {
    return one_ != nullptr ? *one_ : channel_.load(scratch_.place(i));
  }

  GROSR_DEVICE const flow::scratch& scratch() const { return scratch_; }

 private:
  queue::batch_buffer_ref<T> channel_;
  flow::scratch scratch_;
  const T* one_ = nullptr;
  std::uint32_t size_;
};

namespace flow {

/// The most elements that a function takes at a time: what it says, `static constexpr std::uint32_t
/// batch`; 0 for one that takes single ones.
template <class Node>
constexpr std::uint32_t batch_of() {
  if constexpr (requires { typename std::integral_constant<std::uint32_t, Node::batch>; })
    return Node::batch;
  else
    return 0;
}

/// Elements that its channel hands over at a time, at most and unless it says otherwise.
template <class Node>
constexpr std::uint32_t max_batch() {
  return batch_of<Node>() != 0 ? batch_of<Node>() : simt::warp_size;
}
template <class Node>
constexpr std::uint32_t default_batch() {
  return batch_of<Node>() != 0 || run::width_of<Node>() == width::lane ? max_batch<Node>() : 1;
}

}  // namespace flow
}  // namespace grosr
