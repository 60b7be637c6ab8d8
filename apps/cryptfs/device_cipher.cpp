#include <fmt/format.h>

#include "cipher.hpp"
#include "pool.hpp"

namespace grosr::cryptfs {
namespace {

class on_device_cipher final : public cipher {
 public:
  on_device_cipher(const device& d, const secret& key)
      : device_(d), keys_(key), tables_(d), streams_([d] { return simt::stream(d); }) {}
  ~on_device_cipher() override { OPENSSL_cleanse(&keys_, sizeof(keys_)); }

  void run(way how, const sectors& what, const std::byte* in, std::byte* out) override {
    auto taken = streams_.take();
    launch_xts(taken.get(), keys_, tables_, how, what, in, out);
    taken.get().wait();
  }
  device memory() const override { return device_; }
  std::string text() const override { return device_.name(); }

 private:
  const device device_;
  xts_keys keys_;
  const device_tables tables_;
  pool<simt::stream> streams_;
};

}  // namespace

std::unique_ptr<cipher> device_cipher(const device& d, const secret& key) {
  return std::make_unique<on_device_cipher>(d, key);
}

}  // namespace grosr::cryptfs
