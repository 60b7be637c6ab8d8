// The kernel that tells a device's clock, and the host that asks it.
#include "grosr/simt/atomic.hpp"
#include "grosr/simt/lanes.hpp"
#include "grosr/simt/relax.hpp"
#include "grosr/simt/wait.hpp"
#include "run/device_clock.hpp"
#include "run/host_word.hpp"

namespace grosr::run {
namespace {

constexpr std::uint32_t questions_asked = 16;
constexpr std::uint32_t no_more = ~std::uint32_t{0};
constexpr std::uint64_t answer_patience_ns = 1'000'000'000;  // of both sides, for each question

}  // namespace

struct clock_kernel {
  clock_reader::questions* words;

  GROSR_DEVICE void operator()() const {
    if (simt::lane_id() != 0) return;
    const host_word asked(words->asked), answered(words->answered);
    for (std::uint32_t k = 1; k <= questions_asked; ++k) {
      const std::uint64_t until = simt::clock_ns() + answer_patience_ns;
      const auto is_asked = [&] { return asked.load(simt::acquire) >= k; };
      if (simt::wait_until(is_asked, until, nullptr, "a question about the clock") !=
              simt::wait_result::ready ||
          asked.load(simt::relaxed) == no_more)
        return;
      words->at = simt::clock_ns();
      answered.store(k, simt::release);  // R1: `at` before the answer; pairs with A1 in read()
    }
  }
};

clock_reader::clock_reader(const device& d) : words_(d, simt::space::pinned, 1), stream_(d) {
  simt::fit<32, 1, clock_kernel>(d, 32);
}

std::optional<clock_reading> clock_reader::read() {
  if (!stream_.done()) return std::nullopt;  // of an earlier call: it never began
  questions& words = words_[0];
  words = {};
  simt::launch<32, 1>(stream_, {1, 32}, clock_kernel{words_.data()});
  std::optional<clock_reading> best;
  for (std::uint32_t k = 1; k <= questions_asked; ++k) {
    const std::uint64_t before = simt::clock_ns();
    host_word(words.asked).store(k, simt::release);
    // A1: pairs with R1 in the kernel.
    while (host_word(words.answered).load(simt::acquire) != k) {
      if (simt::clock_ns() - before > answer_patience_ns) {
        host_word(words.asked).store(no_more, simt::release);  // should it still begin
        return best;
      }
      simt::relax();
    }
    const std::uint64_t error = (simt::clock_ns() - before) / 2;
    if (!best || error < best->error) best = {words.at, before + error, error};
  }
  stream_.wait();
  return best;
}

device_clock::device_clock(const device& d) {
  if (!d.is_cuda()) return;
  reader_.emplace(d);
  first_ = last_ = reader_->read();
}

void device_clock::read_again() {
  if (!reader_) return;
  const auto now = reader_->read();
  if (!now) return;
  if (!first_) first_ = now;
  last_ = now;
}

std::optional<std::uint64_t> device_clock::at(std::uint64_t on_host) const {
  if (!reader_) return on_host;
  if (!first_) return std::nullopt;
  // Differences are small enough for a double: 2^53 ns are 100 days.
  const auto since = [](std::uint64_t from, std::uint64_t to) {
    return static_cast<double>(static_cast<std::int64_t>(to - from));
  };
  const double host_span = since(first_->on_host, last_->on_host),
               device_span = since(first_->on_device, last_->on_device);
  const double rate = host_span > 0 && device_span > 0 ? device_span / host_span : 1;
  return first_->on_device + static_cast<std::uint64_t>(
                                 static_cast<std::int64_t>(since(first_->on_host, on_host) * rate));
}

}  // namespace grosr::run
