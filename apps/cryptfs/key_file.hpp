// The file of an encrypted directory that has its key, wrapped by a passphrase.
#pragma once

#include <cstdint>
#include <string>

#include "secret.hpp"

namespace grosr::cryptfs {

inline constexpr const char* key_file_name = ".cryptfs";

/// What an encrypted directory is made with.
struct volume {
  std::uint32_t sector_bytes = 4096;
  secret key;  ///< of XTS-AES-256: 64 random bytes
};

/// Throws usage_error unless the directory is there, and empty.
void check_new_directory(const std::string& directory);
/// Makes a key and the file in such a directory. Throws usage_error.
void make_key_file(const std::string& directory, std::uint32_t sector_bytes,
                   const secret& passphrase);
/// Throws usage_error, for a passphrase that is not the one, too.
volume open_key_file(const std::string& directory, const secret& passphrase);

}  // namespace grosr::cryptfs
