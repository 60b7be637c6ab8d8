// What the functions of a dataflow graph get: a view of the block at each of their ports, in<T>,
// out<T> or inout<T>; or heap_out<T> (heap_out.hpp), by which they allocate one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "grosr/simt/config.hpp"

namespace grosr::flow {

/// One point of the space that a kernel node runs over.
struct point {
  std::uint32_t x, y, z;
  std::size_t index;  ///< (z * extent y + y) * extent x + x
};

/// Elements of a block, x next to each other. A value, for the time of a call.
template <class T>
struct block_view {
  T* data = nullptr;
  std::size_t count = 0;         ///< elements that are there; of an output, that there is room for
  std::uint32_t extent[3] = {};  ///< x, y, z of the template, in elements; not checked on access

  GROSR_DEVICE T& operator[](std::size_t i) const { return data[i]; }
  GROSR_DEVICE T& operator()(std::size_t x, std::size_t y, std::size_t z = 0) const {
    return data[(z * extent[1] + y) * extent[0] + x];
  }
  GROSR_DEVICE T* begin() const { return data; }
  GROSR_DEVICE T* end() const { return data + count; }
};

/// An input: what a parameter of this type says is that the function reads a block.
template <class T>
struct in : block_view<const T> {
  using element = T;
};

/// An output: the function writes all of a new block. Functions of the host and of streams may
/// write less where the template is variable, and say so.
template <class T>
struct out : block_view<T> {
  using element = T;
  std::size_t* written = nullptr;  ///< elements; null in kernels, which write all

  /// Says how many elements are written. Not in kernels. A stream function knows the number when it
  /// is called, before the device has run. The node fails with error(invalid_option) for more than
  /// the template has, and for fewer where it is fixed.
  void set_count(std::size_t n) const { *written = n; }
};

template <class T>
class heap_out;

/// In and out: the function changes a block, which goes on.
template <class T>
struct inout : block_view<T> {
  using element = T;
};

}  // namespace grosr::flow
