#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "cipher.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/error.hpp"
#include "measure/samples.hpp"

namespace grosr::cryptfs {
namespace {

constexpr std::size_t small_request = 4096, large_request = 1 << 20;

/// How long a request takes: a line through two measured points.
struct estimate {
  double fixed_us = 0, us_per_byte = 0;
  double of(std::size_t bytes) const { return fixed_us + us_per_byte * static_cast<double>(bytes); }
};

double median_us(cipher& c, std::byte* in, std::byte* out, std::size_t bytes) {
  std::vector<double> us;
  const sectors what{.first = 0, .count = bytes / small_request, .bytes = small_request};
  for (int i = 0; i < 9; ++i)
    us.push_back(tool::timed([&] { c.run(way::encrypt, what, in, out); }));
  us.erase(us.begin());  // what is made once is made then
  return tool::samples(std::move(us)).median();
}

estimate measure(cipher& c, const simt::buffer<std::byte>& in, const simt::buffer<std::byte>& out) {
  const double small = median_us(c, in.data(), out.data(), small_request);
  const double large = median_us(c, in.data(), out.data(), large_request);
  estimate e;
  e.us_per_byte = std::max(0.0, (large - small) / (large_request - small_request));
  e.fixed_us = std::max(0.0, small - e.us_per_byte * small_request);
  return e;
}

class choosing final : public cipher {
 public:
  choosing(const device& d, const secret& key)
      : by_device_(device_cipher(d, key)), by_openssl_(openssl_cipher(key)) {
    const simt::buffer<std::byte> in(d, simt::space::pinned, large_request);
    const simt::buffer<std::byte> out(d, simt::space::pinned, large_request);
    device_ = measure(*by_device_, in, out);
    openssl_ = measure(*by_openssl_, in, out);
  }

  void run(way how, const sectors& what, const std::byte* in, std::byte* out) override {
    const std::size_t bytes = what.all_bytes();
    const std::size_t before = waiting_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    struct leave {
      std::atomic<std::size_t>& of;
      std::size_t bytes;
      ~leave() { of.fetch_sub(bytes, std::memory_order_relaxed); }
    };
    {
      const leave at_end{waiting_bytes_, bytes};
      if (!lost_.load(std::memory_order_relaxed) &&
          device_.of(before + bytes) < openssl_.of(bytes) && done_by_device(how, what, in, out))
        return;
    }
    by_openssl_->run(how, what, in, out);
  }
  device memory() const override { return by_device_->memory(); }
  std::string text() const override {
    const double gained = openssl_.us_per_byte - device_.us_per_byte;
    const double from = (device_.fixed_us - openssl_.fixed_us) / gained;
    if (gained <= 0 || from > large_request)
      return fmt::format("OpenSSL, which is sooner done than {}", by_device_->text());
    return fmt::format("{} from {} bytes on, below OpenSSL", by_device_->text(),
                       tool::grouped(static_cast<std::uint64_t>(std::max(from, 0.0))));
  }

 private:
  /// After an error, OpenSSL does this request and all later ones.
  bool done_by_device(way how, const sectors& what, const std::byte* in, std::byte* out) {
    try {
      by_device_->run(how, what, in, out);
      return true;
    } catch (const grosr::error& wrong) {
      if (!lost_.exchange(true))
        tool::say(fmt::format("cryptfs: {}; OpenSSL encrypts from now on\n",
                              tool::one_line(wrong.what())));
      if (in == out) throw;  // what it was is gone
      return false;
    }
  }

  const std::unique_ptr<cipher> by_device_, by_openssl_;
  estimate device_, openssl_;
  std::atomic<std::size_t> waiting_bytes_{0};  // that the device has
  std::atomic<bool> lost_{false};              // the device
};

}  // namespace

std::unique_ptr<cipher> choosing_cipher(const device& d, const secret& key) {
  return std::make_unique<choosing>(d, key);
}

std::unique_ptr<cipher> make_cipher(const std::string& name, const secret& key) {
  if (name == "openssl") return openssl_cipher(key);
  if (name != "auto") return device_cipher(device(tool::one_line(name)), key);
  const device best = device::best();
  return best.is_cuda() ? choosing_cipher(best, key) : openssl_cipher(key);
}

}  // namespace grosr::cryptfs
