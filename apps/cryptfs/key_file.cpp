// The data key is encrypted by AES-256-GCM with a key that scrypt makes of the passphrase. What
// else the file says is authenticated with it, so that nobody changes the size of sectors
// unnoticed.
#include "key_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/errors.hpp"
#include "cli/text.hpp"
#include "descriptor.hpp"

namespace grosr::cryptfs {
namespace {

using json = nlohmann::ordered_json;
using bytes = std::vector<std::uint8_t>;
using tool::usage_error;

constexpr std::size_t key_bytes = 64, tag_bytes = 16, nonce_bytes = 12, salt_bytes = 32;
constexpr std::uint64_t scrypt_n = 1 << 16, scrypt_r = 8, scrypt_p = 1;
constexpr std::uint64_t most_scrypt_bytes = std::uint64_t{1} << 30;

void demand(bool good, const char* what) {
  if (!good) throw std::runtime_error(fmt::format("OpenSSL could not {}", what));
}

std::string hex(const bytes& b) { return fmt::format("{:02x}", fmt::join(b, "")); }

bytes random_bytes(std::size_t n) {
  bytes b(n);
  demand(RAND_bytes(b.data(), static_cast<int>(n)) == 1, "make random bytes");
  return b;
}

/// scrypt takes 128 n r bytes of memory.
secret key_of(const secret& passphrase, const bytes& salt, std::uint64_t n, std::uint64_t r,
              std::uint64_t p) {
  secret key(32);
  demand(EVP_PBE_scrypt(reinterpret_cast<const char*>(passphrase.data()), passphrase.size(),
                        salt.data(), salt.size(), n, r, p, 256 * n * r + (1 << 20), key.data(),
                        key.size()) == 1,
         "make a key of the passphrase by scrypt");
  return key;
}

/// AES-256-GCM one way or the other. False: the tag is not that of this text and key.
bool gcm(bool encrypt, const secret& key, const bytes& nonce, const std::string& beside,
         const std::uint8_t* in, std::uint8_t* out, std::uint8_t* tag) {
  const std::unique_ptr<EVP_CIPHER_CTX, void (*)(EVP_CIPHER_CTX*)> c(EVP_CIPHER_CTX_new(),
                                                                     EVP_CIPHER_CTX_free);
  int n = 0;
  demand(c &&
             EVP_CipherInit_ex(c.get(), EVP_aes_256_gcm(), nullptr, key.data(), nonce.data(),
                               encrypt ? 1 : 0) == 1 &&
             EVP_CipherUpdate(c.get(), nullptr, &n,
                              reinterpret_cast<const std::uint8_t*>(beside.data()),
                              static_cast<int>(beside.size())) == 1 &&
             EVP_CipherUpdate(c.get(), out, &n, in, key_bytes) == 1,
         "use AES-256-GCM");
  if (!encrypt) EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_SET_TAG, tag_bytes, tag);
  if (EVP_CipherFinal_ex(c.get(), out + n, &n) != 1) return false;
  if (encrypt) EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_GCM_GET_TAG, tag_bytes, tag);
  return true;
}

bytes from_hex(const json& from, const char* name, std::size_t n) {
  const auto text = from.at(name).get<std::string>();
  bytes b(n);
  if (text.size() != 2 * n)
    throw std::runtime_error(fmt::format("\"{}\" has another length", name));
  for (std::size_t i = 0; i < n; ++i)
    b[i] = static_cast<std::uint8_t>(std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return b;
}

std::string path_of(const std::string& directory) {
  return (std::filesystem::path(directory) / key_file_name).string();
}

void demand_directory(const std::string& directory) {
  std::error_code e;
  if (!std::filesystem::is_directory(directory, e))
    throw usage_error(fmt::format("{}: is no directory{}; name one that is there",
                                  tool::one_line(directory),
                                  e ? fmt::format(" ({})", e.message()) : ""));
}

/// All that is written is there, or the file is not.
void write_new(const std::string& directory, const std::string& text) {
  const std::string path = path_of(directory);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool good = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
              fsync(fd) == 0;
  const int why = errno;
  if (fd >= 0) {
    close(fd);
    if (!good) unlink(path.c_str());
  }
  const descriptor names(good ? open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
  if (names.fd >= 0) fsync(names.fd);  // file systems may have no fsync of directories
  if (!good)
    throw usage_error(
        fmt::format("{}: cannot be written ({}); make room, or choose another "
                    "directory",
                    tool::one_line(path), std::strerror(why)));
}

}  // namespace

void check_new_directory(const std::string& directory) {
  demand_directory(directory);
  std::error_code e;
  if (std::filesystem::exists(path_of(directory), e))
    throw usage_error(
        fmt::format("{}: is an encrypted directory already; mount it, or choose "
                    "another one",
                    tool::one_line(directory)));
  if (!std::filesystem::is_empty(directory, e))
    throw usage_error(fmt::format("{}: is not empty{}; choose an empty directory",
                                  tool::one_line(directory),
                                  e ? fmt::format(" ({})", e.message()) : ""));
}

void make_key_file(const std::string& directory, std::uint32_t sector_bytes,
                   const secret& passphrase) {
  check_new_directory(directory);
  secret key(key_bytes);
  demand(RAND_priv_bytes(key.data(), key_bytes) == 1, "make a random key");
  const bytes salt = random_bytes(salt_bytes), nonce = random_bytes(nonce_bytes);
  json file{{"cryptfs", 1},       {"cipher", "aes-256-xts"}, {"sector", sector_bytes},
            {"kdf", "scrypt"},    {"n", scrypt_n},           {"r", scrypt_r},
            {"p", scrypt_p},      {"salt", hex(salt)},       {"wrap", "aes-256-gcm"},
            {"nonce", hex(nonce)}};
  bytes wrapped(key_bytes), tag(tag_bytes);
  gcm(true, key_of(passphrase, salt, scrypt_n, scrypt_r, scrypt_p), nonce, file.dump(), key.data(),
      wrapped.data(), tag.data());
  file["key"] = hex(wrapped);
  file["tag"] = hex(tag);
  write_new(directory, file.dump(2) + "\n");
}

volume open_key_file(const std::string& directory, const secret& passphrase) {
  demand_directory(directory);
  const std::string path = path_of(directory);
  std::error_code e;
  std::ifstream in;  // not of a pipe, which nobody may ever write to
  if (std::filesystem::symlink_status(path, e).type() == std::filesystem::file_type::regular)
    in.open(path, std::ios::binary);
  if (!in.is_open())
    throw usage_error(
        fmt::format("{}: is no encrypted directory, it has no {}; 'cryptfs init' "
                    "makes one",
                    tool::one_line(directory), key_file_name));
  volume v;
  bytes salt, nonce, wrapped, tag;
  std::uint64_t n = 0, r = 0, p = 0;
  std::string beside;
  try {
    json file = json::parse(in);
    if (file.at("cryptfs") != 1 || file.at("cipher") != "aes-256-xts" ||
        file.at("kdf") != "scrypt" || file.at("wrap") != "aes-256-gcm")
      throw std::runtime_error("it is of another version");
    v.sector_bytes = file.at("sector");
    n = file.at("n");
    r = file.at("r");
    p = file.at("p");
    const bool scrypt_has_them = std::has_single_bit(n) && n > 1 && r != 0 && p != 0;
    if (!scrypt_has_them || n > 1 << 22 || r > 32 || p > 16 || 128 * n * r > most_scrypt_bytes ||
        (v.sector_bytes != 512 && v.sector_bytes != 4096))
      throw std::runtime_error("its numbers are out of range");
    salt = from_hex(file, "salt", salt_bytes);
    nonce = from_hex(file, "nonce", nonce_bytes);
    wrapped = from_hex(file, "key", key_bytes);
    tag = from_hex(file, "tag", tag_bytes);
    file.erase("key");
    file.erase("tag");
    beside = file.dump();
  } catch (const std::exception& e) {
    throw usage_error(
        fmt::format("{}: cannot be read as the key of an encrypted directory ({}); "
                    "bring back a copy of it",
                    tool::one_line(path), tool::one_line(e.what())));
  }
  v.key = secret(key_bytes);
  if (!gcm(false, key_of(passphrase, salt, n, r, p), nonce, beside, wrapped.data(), v.key.data(),
           tag.data()))
    throw usage_error(
        fmt::format("{}: the passphrase is not that of this directory, or its {} was "
                    "changed; try another passphrase",
                    tool::one_line(directory), key_file_name));
  return v;
}

}  // namespace grosr::cryptfs
