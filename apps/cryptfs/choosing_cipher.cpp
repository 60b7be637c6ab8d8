#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "choice.hpp"
#include "cipher.hpp"
#include "cli/text.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/error.hpp"
#include "measure/samples.hpp"

namespace grosr::cryptfs {
namespace {

constexpr std::size_t small_request = 4096;
using clock = std::chrono::steady_clock;

/// Requests that nobody asked for, to measure with.
class trial {
 public:
  explicit trial(const device& d)
      : large(d.is_cuda() ? 1 << 20 : 1 << 14),  // the host backend takes milliseconds for more
        in_(d, simt::space::pinned, large),
        out_(d, simt::space::pinned, large) {}

  estimate usual(cipher& c) const {
    const double small_us = median_us(c, small_request);
    return estimate::through(small_request, small_us, large, median_us(c, large));
  }

  /// The worse of two, which is not one by luck; nothing where a large request takes too long.
  std::optional<estimate> now(cipher& c, double too_long_us) const {
    double us[2] = {};
    for (const std::size_t bytes : {small_request, large})
      for (int i = 0; i < 2; ++i) {
        double& slower = us[bytes == large];
        slower = std::max(slower, once_us(c, bytes));
        if (slower >= too_long_us) return std::nullopt;
      }
    return estimate::through(small_request, us[0], large, us[1]);
  }

  const std::size_t large;

 private:
  double once_us(cipher& c, std::size_t bytes) const {
    const sectors what{.first = 0, .count = bytes / small_request, .bytes = small_request};
    return tool::timed([&] { c.run(way::encrypt, what, in_.data(), out_.data()); });
  }
  double median_us(cipher& c, std::size_t bytes) const {
    once_us(c, bytes);  // what is made once is made then
    std::vector<double> us;
    for (int i = 0; i < 8; ++i) us.push_back(once_us(c, bytes));
    return tool::samples(std::move(us)).median();
  }

  simt::buffer<std::byte> in_, out_;
};

class choosing final : public cipher {
 public:
  choosing(const device& d, const secret& key)
      : by_device_(device_cipher(d, key)),
        by_openssl_(openssl_cipher(key)),
        trial_(d),
        device_(trial_.usual(*by_device_)),
        openssl_(trial_.usual(*by_openssl_)),
        choice_(device_, openssl_),
        prober_([this](const std::stop_token& stop) { probe_until(stop); }) {}

  void run(way how, const sectors& what, const std::byte* in, std::byte* out) override {
    if (!lost_.load(std::memory_order_relaxed)) {
      const std::size_t bytes = what.all_bytes();
      if (const auto given = choice_.give(bytes, clock::now())) {
        struct leave {
          choice& of;
          choice::ticket which;
          ~leave() { of.done(which, clock::now()); }
        } const at_end{choice_, *given};
        if (done_by_device(how, what, in, out)) return;
      } else if (choice_.probe_is_due(bytes, clock::now())) {
        begin_probe();
      }
    }
    by_openssl_->run(how, what, in, out);
  }
  device memory() const override { return by_device_->memory(); }
  std::string text() const override {
    const double gained = openssl_.us_per_byte - device_.us_per_byte;
    const double from = (device_.fixed_us - openssl_.fixed_us) / gained;
    if (gained <= 0 || from > static_cast<double>(trial_.large))
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
      lose_device(wrong);
      if (in == out) throw;  // what it was is gone
      return false;
    }
  }
  void lose_device(const grosr::error& wrong) {
    if (!lost_.exchange(true))
      tool::say(
          fmt::format("cryptfs: {}; OpenSSL encrypts from now on\n", tool::one_line(wrong.what())));
  }

  void begin_probe() {
    {
      std::lock_guard guard(lock_);
      due_ = true;
    }
    wake_.notify_one();
  }
  /// On a thread of its own: a request does not wait for what a probe takes.
  void probe_until(const std::stop_token& stop) {
    for (;;) {
      {
        std::unique_lock guard(lock_);
        if (!wake_.wait(guard, stop, [this] { return due_; })) return;
        due_ = false;
      }
      try {
        const double openssl_us = openssl_.of(trial_.large);
        choice_.probed(trial_.now(*by_device_, openssl_us), clock::now());
      } catch (const grosr::error& wrong) {
        lose_device(wrong);
      }
    }
  }

  const std::unique_ptr<cipher> by_device_, by_openssl_;
  const trial trial_;
  const estimate device_, openssl_;  // as they were at first
  choice choice_;
  std::atomic<bool> lost_{false};  // the device
  std::mutex lock_;
  std::condition_variable_any wake_;
  bool due_ = false;     // a probe
  std::jthread prober_;  // ends before what it uses
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
