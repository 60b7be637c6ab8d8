#include "net/thread_team.hpp"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
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

struct thread_team::moment {
  clock::time_point at;
  std::uint64_t done = 0, failed = 0;
  double own_cpu_s = 0, cpu_s = 0;
};

void thread_team::join() {
  ends_ = true;
  for (auto& t : threads_)
    if (t.joinable()) t.join();
}

void thread_team::run_member(unsigned member, const work& w) {
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

thread_team::thread_team(unsigned count, const work& w) : tallies_(new tally[count]) {
  try {
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this, w, i] { run_member(i, w); });
  } catch (...) {
    join();
    throw;
  }
}

thread_team::~thread_team() { join(); }

void thread_team::end() {
  join();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

thread_team::moment thread_team::now() {
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

void thread_team::pass(double seconds) {
  for (double left = seconds; left > 0 && !threw_; left -= 0.02)
    interrupt::sleep_for_seconds(std::min(left, 0.02));
  if (threw_) end();
}

thread_team::measurement thread_team::measure(double warm_up, double seconds) {
  pass(warm_up);
  const moment before = now();
  pass(seconds);
  const moment after = now();
  measurement f;
  f.seconds = std::chrono::duration<double>(after.at - before.at).count();
  f.done = after.done - before.done;
  f.failed = after.failed;
  f.own_cpu_s = after.own_cpu_s - before.own_cpu_s;
  f.others_cpu_s = after.cpu_s - before.cpu_s - f.own_cpu_s;
  return f;
}

}  // namespace grosr::tool
