// Who encrypts: a device, OpenSSL, or whichever is sooner done.
#pragma once

#include <memory>
#include <string>

#include "secret.hpp"
#include "xts.hpp"

namespace grosr::cryptfs {

/// Encrypts and decrypts sectors with one key. Thread-safe.
class cipher {
 public:
  virtual ~cipher() = default;
  /// `in` and `out`: aligned to 16 bytes, and pinned for memory(); they may be the same, and do not
  /// overlap else. Throws grosr::error.
  virtual void run(way how, const sectors& what, const std::byte* in, std::byte* out) = 0;
  /// The device whose pinned memory it takes: the host backend's is plain memory.
  virtual device memory() const { return device(); }
  /// For people.
  virtual std::string text() const = 0;
};

/// By instructions of the processor, on the calling thread.
std::unique_ptr<cipher> openssl_cipher(const secret& key);
/// By a kernel that reads and writes the pinned memory itself.
std::unique_ptr<cipher> device_cipher(const device& d, const secret& key);
/// Measures both for small and large requests, and gives each request to the one that is sooner
/// done with it, after those that the device has at the time.
std::unique_ptr<cipher> choosing_cipher(const device& d, const secret& key);

/// "openssl", the name of a device, or "auto": choosing between the two where there is a GPU, else
/// OpenSSL.
std::unique_ptr<cipher> make_cipher(const std::string& name, const secret& key);

}  // namespace grosr::cryptfs
