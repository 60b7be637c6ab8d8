// The thread that runs a graph's functions of the host.
#include "grosr/flow/detail/host_side.hpp"

#include <utility>

namespace grosr::flow {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::microseconds busy_nap = 20us, idle_nap = 1ms;
constexpr unsigned idle_looks = 500;  // without elements: some 10 ms

}  // namespace

host_side::host_side(device d, std::uint32_t records) : records_(d, records) {}

host_side::~host_side() {
  {
    std::lock_guard lock(lock_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::uint32_t host_side::add(std::function<void(const host_batch&)> f) {
  functions_.push_back(std::move(f));
  waiting_.emplace_back();
  return static_cast<std::uint32_t>(functions_.size() - 1);
}

void host_side::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
}

std::size_t host_side::drain() {
  std::size_t n = records_.pop_while([&](const queue::record& r, std::uint64_t) {
    waiting_[r.part[0]].push_back(r);
    return queue::pop_result::more;
  });
  if (n != 0) records_.give_credit();
  return n;
}

void host_side::serve() {
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    if (waiting_[i].empty()) continue;
    host_batch batch;
    batch.swap(waiting_[i]);
    std::exception_ptr thrown;
    try {
      if (!thrown_) functions_[i](batch);
    } catch (...) {
      thrown = std::current_exception();
    }
    std::lock_guard lock(lock_);
    served_ += batch.size();
    if (thrown) thrown_ = thrown;
  }
}

void host_side::work() {
  unsigned idle = 0;
  for (;;) {
    std::uint64_t asked;
    {
      std::lock_guard lock(lock_);
      if (stop_) return;
      asked = asked_;
    }
    bool some = drain() != 0;
    for (const host_batch& b : waiting_) some = some || !b.empty();
    if (some) {
      serve();
      idle = 0;
      continue;
    }
    std::unique_lock lock(lock_);
    if (answered_ != asked) {
      answered_ = asked;
      done_.notify_all();
    }
    wake_.wait_for(lock, ++idle > idle_looks ? idle_nap : busy_nap,
                   [&] { return stop_ || asked_ != answered_; });
  }
}

std::uint64_t host_side::served() {
  std::lock_guard lock(lock_);
  return served_;
}

bool host_side::settle(run::deadline until, std::uint64_t& now) {
  std::unique_lock lock(lock_);
  const std::uint64_t mine = ++asked_;
  wake_.notify_all();
  auto answered = [&] { return answered_ >= mine; };
  if (!until)
    done_.wait(lock, answered);
  else if (!done_.wait_until(lock, *until, answered))
    return false;
  if (thrown_) std::rethrow_exception(thrown_);
  now = served_;
  return true;
}

}  // namespace grosr::flow
