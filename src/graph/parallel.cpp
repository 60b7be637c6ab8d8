// Threads of a loop, and what they throw.
#include "graph/parallel.hpp"

#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "cli/interrupt.hpp"
#include "cli/progress.hpp"

namespace grosr::graphs {

unsigned threads_or_all(unsigned threads) {
  return threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
}

void between_steps(bool shows) {
  if (shows)
    tool::progress::pulse();
  else
    tool::interrupt::check();
}

void run_threads(unsigned threads, const std::function<void(unsigned)>& work) {
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

}  // namespace grosr::graphs
