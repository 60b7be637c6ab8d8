// Memory of a device that several processes use: one makes it, and others map it by a file
// descriptor that they are sent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "grosr/simt/device.hpp"

namespace grosr::simt {

/// Names a device in the same way in all processes of the machine: a GPU by its UUID, which no
/// CUDA_VISIBLE_DEVICES changes.
struct device_identity {
  backend kind = backend::host;
  std::array<std::uint8_t, 16> uuid = {};

  /// As nvidia-smi says it: "GPU-1b4e28ba-2fa1-11d2-883f-0016d3cca427"; of the host "host:0".
  std::string text() const;
  friend bool operator==(const device_identity&, const device_identity&) = default;
};

/// Throws error(device_lost).
device_identity identity_of(const device& d);
/// The device of this process that is so named. None: it has no such one.
std::optional<device> device_with(const device_identity& i);

/// Movable. Not thread-safe by itself. What is put into streams is to be over before the end of
/// the object; memory goes when the last process has let go of it.
class shareable_memory {
 public:
  shareable_memory() = default;
  /// Zeroed bytes, aligned to 256. Others may write there where `others_write`; on a GPU always.
  /// Throws error(out_of_memory); error(not_built) where the driver lets nobody else use memory of
  /// the device; std::system_error.
  static shareable_memory make(const device& d, std::size_t bytes, bool others_write);
  /// What another process has made, of which `file` was sent, with as many bytes. Takes the file.
  /// Throws error(bad_input) where that is something else, std::system_error.
  static shareable_memory map(const device& d, int file, std::size_t bytes, bool writes);

  shareable_memory(shareable_memory&& o) noexcept { *this = std::move(o); }
  shareable_memory& operator=(shareable_memory&& o) noexcept;
  ~shareable_memory();

  const device& where() const { return device_; }
  /// An address of the device. Null: of nothing.
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  /// For others, who may be sent copies of it.
  int file() const { return file_; }

 private:
  shareable_memory(const device& d, std::size_t bytes, int file);

  device device_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  int file_ = -1;
  long made_in_ = 0;
};

}  // namespace grosr::simt
