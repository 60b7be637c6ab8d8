#include "net/crowd.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <utility>

#include "cli/interrupt.hpp"
#include "measure/samples.hpp"

namespace grosr::tool {
namespace {

double seconds_on(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

}  // namespace

struct crowd::moment {
  clock::time_point at;
  std::uint64_t done = 0, failed = 0;
  double own_cpu_s = 0, cpu_s = 0;
};

void crowd::join() {
  ends_ = true;
  for (auto& t : threads_)
    if (t.joinable()) t.join();
}

void crowd::be(unsigned member, const work& w) {
  try {
    w(member, ends_, tallies_[member]);
  } catch (...) {
    std::lock_guard lock(lock_);
    if (!thrown_) thrown_ = std::current_exception();
    threw_ = true;
  }
  // Its CPU time can be asked for until it ends.
  while (!ends_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

crowd::crowd(unsigned count, const work& w) : tallies_(new tally[count]) {
  try {
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this, w, i] { be(i, w); });
  } catch (...) {
    join();
    throw;
  }
}

crowd::~crowd() { join(); }

void crowd::end() {
  join();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

crowd::moment crowd::now() {
  moment m{clock::now()};
  m.cpu_s = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    clockid_t own{};
    if (pthread_getcpuclockid(threads_[i].native_handle(), &own) == 0)
      m.own_cpu_s += seconds_on(own);
    m.done += tallies_[i].done.load(std::memory_order_relaxed);
    m.failed += tallies_[i].failed.load(std::memory_order_relaxed);
  }
  return m;
}

void crowd::pass(double seconds) {
  for (double left = seconds; left > 0 && !threw_; left -= 0.02)
    interrupt::sleep_for_seconds(std::min(left, 0.02));
  if (threw_) end();
}

crowd::figures crowd::measure(double warm_up, double seconds) {
  pass(warm_up);
  const moment before = now();
  pass(seconds);
  const moment after = now();
  figures f;
  f.seconds = std::chrono::duration<double>(after.at - before.at).count();
  f.done = after.done - before.done;
  f.failed = after.failed;
  f.own_cpu_s = after.own_cpu_s - before.own_cpu_s;
  f.others_cpu_s = after.cpu_s - before.cpu_s - f.own_cpu_s;
  return f;
}

}  // namespace grosr::tool
