#include "sys/at_exit.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace grosr::sys {
namespace {

struct registered {
  std::mutex lock;
  std::vector<const std::function<void()>*> all;
  pid_t process = 0;  // a fork has none of the threads

  static registered& of_process() {
    static auto* one = new registered;  // there until the very end
    return *one;
  }
};

void leave_all() {
  registered& r = registered::of_process();
  if (r.process != ::getpid()) return;
  std::lock_guard lock(r.lock);
  for (auto at = r.all.rbegin(); at != r.all.rend(); ++at) (**at)();
}

}  // namespace

at_exit::at_exit(std::function<void()> leave) : leave_(std::move(leave)) {
  registered& r = registered::of_process();
  std::lock_guard lock(r.lock);
  // After what the device needs was set up, hence called before that is torn down.
  static const int once = std::atexit(leave_all);
  static_cast<void>(once);
  if (r.process != ::getpid()) r.all.clear();  // the parent's servers have no threads here
  r.process = ::getpid();
  r.all.push_back(&leave_);
}

at_exit::~at_exit() {
  registered& r = registered::of_process();
  std::lock_guard lock(r.lock);
  std::erase(r.all, &leave_);
}

}  // namespace grosr::sys
