// Bytes that are wiped when they are not needed any more.
#pragma once

#include <openssl/crypto.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace grosr::cryptfs {

class secret {
 public:
  secret() = default;
  explicit secret(std::size_t bytes) : bytes_(bytes) {}
  explicit secret(std::string_view text) : bytes_(text.begin(), text.end()) {}
  secret(secret&&) noexcept = default;
  secret& operator=(secret&& other) noexcept {
    bytes_.swap(other.bytes_);
    return *this;
  }
  ~secret() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

  std::uint8_t* data() { return bytes_.data(); }
  const std::uint8_t* data() const { return bytes_.data(); }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  operator std::span<const std::uint8_t>() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

}  // namespace grosr::cryptfs
