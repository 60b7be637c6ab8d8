#include <openssl/evp.h>

#include <mutex>
#include <vector>

#include "cipher.hpp"
#include "pool.hpp"

namespace grosr::cryptfs {
namespace {

struct free_context {
  void operator()(EVP_CIPHER_CTX* c) const { EVP_CIPHER_CTX_free(c); }
};
using context = std::unique_ptr<EVP_CIPHER_CTX, free_context>;

void demand(bool good) {
  if (!good) throw grosr::error(errc::misuse, "OpenSSL refused to encrypt by AES-XTS");
}

class openssl final : public cipher {
 public:
  explicit openssl(const secret& key)
      : encrypt_([this] { return make(1); }),
        decrypt_([this] { return make(0); }),
        key_(key.size()) {
    std::copy_n(key.data(), key.size(), key_.data());
  }

  void run(way how, const sectors& what, const std::byte* in, std::byte* out) override {
    auto taken = (how == way::encrypt ? encrypt_ : decrypt_).take();
    EVP_CIPHER_CTX* c = taken.get().get();
    for (std::size_t i = 0; i < what.count; ++i) {
      const std::uint64_t number[2] = {what.first + i, what.file};
      const auto* tweak = reinterpret_cast<const unsigned char*>(number);
      int written = 0;
      demand(EVP_CipherInit_ex(c, nullptr, nullptr, nullptr, tweak, -1) == 1 &&
             EVP_CipherUpdate(c, reinterpret_cast<unsigned char*>(out + i * what.bytes), &written,
                              reinterpret_cast<const unsigned char*>(in + i * what.bytes),
                              static_cast<int>(what.bytes)) == 1 &&
             written == static_cast<int>(what.bytes));
    }
  }
  std::string text() const override { return "OpenSSL"; }

 private:
  context make(int encrypt) const {
    context c(EVP_CIPHER_CTX_new());
    const EVP_CIPHER* kind = key_.size() == 64 ? EVP_aes_256_xts() : EVP_aes_128_xts();
    demand(c && EVP_CipherInit_ex(c.get(), kind, nullptr, key_.data(), nullptr, encrypt) == 1);
    return c;
  }

  pool<context> encrypt_, decrypt_;
  secret key_;
};

}  // namespace

std::unique_ptr<cipher> openssl_cipher(const secret& key) { return std::make_unique<openssl>(key); }

}  // namespace grosr::cryptfs
