// Threads of a loop, and what they throw.
#include "graph/host_threads.hpp"

#include <exception>
#include <system_error>
#include <utility>
#include <vector>

namespace grosr::graphs {

host_threads::host_threads(unsigned threads, const work_watcher& watch)
    : count_(threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency())),
      watch_(watch) {}

void host_threads::look() {
  if (std::this_thread::get_id() != asker_) {
    if (ended_.load(std::memory_order_relaxed)) throw ended{};
    return;
  }
  if (!watch_) return;
  try {
    watch_(now_);
  } catch (...) {
    ended_.store(true, std::memory_order_relaxed);
    throw;
  }
}

void host_threads::run(unsigned threads, const std::function<void(unsigned)>& work) const {
  if (threads <= 1) return work(0);
  std::vector<std::exception_ptr> thrown(threads);
  const auto guarded = [&](unsigned i) {
    try {
      work(i);
    } catch (...) {
      thrown[i] = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  others.reserve(threads - 1);
  unsigned started = 1;
  try {
    for (; started < threads; ++started) others.emplace_back(guarded, started);
  } catch (const std::system_error&) {  // no more threads: this one does the rest
  }
  guarded(0);
  for (unsigned i = started; i < threads; ++i) guarded(i);
  for (std::thread& t : others) t.join();
  for (const std::exception_ptr& e : thrown)
    if (e) std::rethrow_exception(e);
}

host_threads::stage::stage(host_threads& threads, std::string what, std::uint64_t steps)
    : threads_(threads),
      what_(std::move(what)),
      outer_(std::exchange(threads.now_, {what_, 0, steps})) {}

host_threads::stage::~stage() { threads_.now_ = outer_; }

void host_threads::stage::at(std::uint64_t done) {
  threads_.now_.done = done;
  threads_.look();
}

}  // namespace grosr::graphs
