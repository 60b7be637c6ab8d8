// The thread that runs a graph's functions of the host.
#include "grosr/flow/detail/host_side.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace grosr::flow {
namespace {

using namespace std::chrono_literals;
constexpr std::chrono::microseconds busy_nap = 20us, idle_nap = 1ms;
constexpr unsigned idle_looks = 500;  // without elements: some 10 ms

std::uint32_t checked(std::uint32_t records) {
  queue::check_capacity(records, "graph: host_records", simt::warp_size);
  return records;
}

}  // namespace

struct host_side::shared {
  std::mutex lock;
  std::condition_variable wake, done;
  std::uint64_t asked = 0, answered = 0;  // calls of settle()
  std::uint64_t served = 0;               // elements
  std::exception_ptr thrown;
  bool stop = false;
  std::thread thread;
};

host_side::host_side(device d, std::uint32_t records)
    : records_(d, checked(records)), shared_(new shared) {}

host_side::~host_side() {
  {
    std::lock_guard lock(shared_->lock);
    shared_->stop = true;
  }
  shared_->wake.notify_all();
  if (shared_->thread.joinable()) shared_->thread.join();
}

bool host_side::inside() const { return std::this_thread::get_id() == shared_->thread.get_id(); }

void host_side::nap() { std::this_thread::sleep_for(busy_nap); }

std::uint32_t host_side::add(std::function<void(const host_batch&)> f) {
  functions_.push_back(std::move(f));
  waiting_.emplace_back();
  return static_cast<std::uint32_t>(functions_.size() - 1);
}

void host_side::start() {
  if (shared_->thread.joinable()) return;
  try {
    shared_->thread = std::thread([this] { work(); });
  } catch (...) {
    rethrow_as_error("a graph's thread for functions of the host was asked for");
  }
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
      if (!shared_->thrown) functions_[i](batch);
    } catch (...) {
      thrown = std::current_exception();
    }
    std::lock_guard lock(shared_->lock);
    shared_->served += batch.size();
    if (thrown) shared_->thrown = thrown;
  }
}

void host_side::work() {
  unsigned idle = 0;
  for (;;) {
    std::uint64_t asked;
    {
      std::lock_guard lock(shared_->lock);
      if (shared_->stop) return;
      asked = shared_->asked;
    }
    bool some = drain() != 0;
    for (const host_batch& b : waiting_) some = some || !b.empty();
    if (some) {
      serve();
      idle = 0;
      continue;
    }
    std::unique_lock lock(shared_->lock);
    if (shared_->answered != asked) {
      shared_->answered = asked;
      shared_->done.notify_all();
    }
    shared_->wake.wait_for(lock, ++idle > idle_looks ? idle_nap : busy_nap,
                           [&] { return shared_->stop || shared_->asked != shared_->answered; });
  }
}

std::uint64_t host_side::served() {
  std::lock_guard lock(shared_->lock);
  return shared_->served;
}

bool host_side::settle(run::deadline until, std::uint64_t& now) {
  std::unique_lock lock(shared_->lock);
  const std::uint64_t mine = ++shared_->asked;
  shared_->wake.notify_all();
  auto answered = [&] { return shared_->answered >= mine; };
  if (!until)
    shared_->done.wait(lock, answered);
  else if (!shared_->done.wait_until(lock, *until, answered))
    return false;
  if (shared_->thrown) std::rethrow_exception(shared_->thrown);
  now = shared_->served;
  return true;
}

}  // namespace grosr::flow
