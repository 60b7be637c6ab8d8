// Memory by space, owned by the host side.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include "grosr/simt/device.hpp"

namespace grosr::simt {

/// Where bytes live. `device`: the device's own memory (on the host backend, plain memory).
/// `pinned`: host memory that the device reads and writes over the bus, at the same address. A
/// forked child may not have that of a GPU.
enum class space { device, pinned };

/// Allocates zeroed bytes, aligned to 256; null for 0 bytes. Throws error(out_of_memory) with what
/// was asked and what is free. Device memory is plain, never managed. Must not be called while a
/// resident kernel keeps the device busy for ever: the runtime parks first. Thread-safe.
void* allocate_bytes(device d, space s, std::size_t bytes);

/// Gives back what allocate_bytes() returned for the same device and space; null is ignored. On a
/// GPU it waits, as cudaFree does, until every kernel has ended. Thread-safe.
void free_bytes(device d, space s, void* p) noexcept;

/// Copies between any two spaces of `d` and the host, and waits. Runs beside resident kernels:
/// it uses a stream of its own that waits for no other, and goes through pinned memory of its own
/// where host memory is not pinned. Throws error(device_lost) when the device faulted. Thread-safe.
void copy_bytes(device d, void* to, const void* from, std::size_t bytes);

namespace detail {
[[noreturn]] void refuse_index();  ///< of device memory: throws error(misuse)
void check_copy(std::size_t asked, std::size_t present);  ///< throws error(invalid_option) if more

constexpr std::size_t bytes_of(std::size_t count, std::size_t size) {
  return count > ~std::size_t{0} / size ? ~std::size_t{0}
                                        : count * size;  // too much is out of memory
}
}  // namespace detail

/// An owner of `count` zeroed objects in one space. Movable. Not thread-safe by itself.
template <class T>
class buffer {
  static_assert(std::is_trivially_copyable_v<T>, "grosr: a buffer holds trivially copyable types");

 public:
  buffer() = default;
  buffer(device d, space s, std::size_t count)
      : device_(d),
        space_(s),
        count_(count),
        data_(static_cast<T*>(allocate_bytes(d, s, detail::bytes_of(count, sizeof(T))))) {}
  buffer(buffer&& other) noexcept { swap(other); }
  buffer& operator=(buffer&& other) noexcept {
    buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~buffer() {
    if (data_) free_bytes(device_, space_, data_);
  }

  /// Device pointer; for `pinned`, valid on the host too.
  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  std::size_t bytes() const { return count_ * sizeof(T); }
  /// An object of a pinned buffer, on the host. Throws error(misuse) for device memory, which the
  /// host does not reach on a GPU: copy_from() and copy_to() do.
  T& operator[](std::size_t i) const {
    if (space_ == space::device) [[unlikely]]
      detail::refuse_index();
    return data_[i];
  }

  /// Copies to or from the front of the buffer; throws error(invalid_option) when it is too small.
  void copy_from(std::span<const T> source) {
    detail::check_copy(source.size(), count_);
    copy_bytes(device_, data_, source.data(), source.size_bytes());
  }
  void copy_to(std::span<T> target) const {
    detail::check_copy(target.size(), count_);
    copy_bytes(device_, target.data(), data_, target.size_bytes());
  }

  void swap(buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(space_, other.space_);
    std::swap(count_, other.count_);
    std::swap(data_, other.data_);
  }

 private:
  device device_;
  space space_ = space::device;
  std::size_t count_ = 0;
  T* data_ = nullptr;
};

}  // namespace grosr::simt
