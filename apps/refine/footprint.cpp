#include "footprint.hpp"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace grosr::refine {

std::uint64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  if (!(in >> size >> resident))
    throw std::runtime_error("/proc/self/statm cannot be read: mount /proc to watch the memory");
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

footprint::footprint() {
  resident_bytes();  // says here what is wrong, not in the thread
  thread_ = std::thread([this] {
    while (!ends_.load()) {
      const std::uint64_t now = resident_bytes();
      for (std::uint64_t was = most_.load(); was < now && !most_.compare_exchange_weak(was, now);) {
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
}

footprint::~footprint() {
  ends_ = true;
  thread_.join();
}

std::uint64_t footprint::most() {
  const std::uint64_t now = resident_bytes(), seen = most_.exchange(0);
  return now > seen ? now : seen;
}

}  // namespace grosr::refine
