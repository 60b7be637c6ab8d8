// Test vectors of AES-XTS.
#pragma once

#include <cstdint>
#include <vector>

namespace grosr::cryptfs {

struct test_vector {
  unsigned number;  ///< in the standard
  const char* key;  ///< all in hexadecimal
  std::uint64_t unit;
  const char* plain;  ///< counting_512: 00, 01, ... ff, twice
  const char* encrypted;
};
inline constexpr const char* counting_512 = nullptr;

const std::vector<test_vector>& test_vectors();

}  // namespace grosr::cryptfs
