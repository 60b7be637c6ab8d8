#include "feed.hpp"

#include <algorithm>
#include <thread>

#include "cli/progress.hpp"

namespace grosr::gesture {

feed::feed(const course& c, std::function<void()> counting_begins)
    : course_(c), counting_begins_(std::move(counting_begins)), began_ns_(now_ns()) {}

std::int64_t feed::due(std::uint64_t number) const {
  return began_ns_ + static_cast<std::int64_t>(static_cast<double>(number) * 1e9 / course_.fps);
}

bool feed::over() const {
  return number_ >= course_.all() ||
         (counts_from_ns_ != 0 &&
          static_cast<double>(now_ns() - counts_from_ns_) > course_.seconds * 1e9);
}

bool feed::ready() const { return !over() && (course_.fps == 0 || now_ns() >= due(number_)); }

std::optional<taken> feed::next() {
  tool::progress::pulse();
  if (over()) return std::nullopt;
  std::int64_t captured = now_ns();
  if (course_.fps != 0) {
    if (captured < due(number_)) {
      while ((captured = now_ns()) < due(number_)) {
        std::this_thread::sleep_for(
            std::chrono::nanoseconds(std::min<std::int64_t>(due(number_) - captured, 20'000'000)));
        tool::progress::pulse();
      }
    } else {
      while (number_ + 1 < course_.all() && captured >= due(number_ + 1))
        if (number_++ >= course_.warmup) ++dropped_;
      captured = due(number_);
    }
  }
  if (number_ >= course_.warmup && counts_from_ns_ == 0) {
    if (counting_begins_) counting_begins_();
    counts_from_ns_ = now_ns();
    if (course_.fps == 0) captured = counts_from_ns_;
  }
  return taken{number_++, captured};
}

delivery::delivery(const course& c, const frame_shape& of) : course_(c), hands_(of) {
  const std::size_t some = std::min<std::size_t>(c.all(), 1 << 20);
  events_.reserve(some * 4);
  frames_.reserve(some);
  latencies_us_.reserve(some);
}

void delivery::summary(const taken& t, const cell* of) {
  const std::vector<event>& all = hands_.see(t.number, of);
  events(t, now_ns(), all.data(), all.size());
}

void delivery::events(const taken& t, std::int64_t delivered_ns, const event* first,
                      std::size_t count) {
  events_.insert(events_.end(), first, first + count);
  frames_.push_back(t.number);
  if (t.number < course_.warmup) return;
  if (latencies_us_.empty()) {
    first_ns_ = t.captured_ns;
    first_delivered_ns_ = delivered_ns;
  }
  last_ns_ = delivered_ns;
  const auto took = static_cast<double>(delivered_ns - t.captured_ns);
  latencies_us_.push_back(took * 1e-3);
  if (course_.fps != 0 && took * course_.fps > 1e9) ++late_;
}

std::size_t delivery::bytes() const {
  return events_.size() * sizeof(event) + frames_.size() * 8 + latencies_us_.size() * 8;
}

double delivery::frames_per_s() const {
  if (last_ns_ == first_delivered_ns_) return 0;
  return static_cast<double>(latencies_us_.size() - 1) * 1e9 /
         static_cast<double>(last_ns_ - first_delivered_ns_);
}

double delivery::seconds() const { return static_cast<double>(last_ns_ - first_ns_) * 1e-9; }

}  // namespace grosr::gesture
