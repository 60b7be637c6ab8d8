#include "sys/map_room.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

namespace grosr::sys {
namespace {

// A call divides one mapping into three at most.
constexpr std::uint64_t by_a_call = 2;
// With fewer calls to go there is no room. A look takes 100 ms when there are many mappings, so
// after one that found no room calls are refused for so many times as long.
constexpr std::uint64_t fewest = 512;
constexpr int pause = 20;

std::uint64_t most_of_process() {
  static const std::uint64_t allowed = [] {
    std::uint64_t n = 0;
    return std::ifstream("/proc/sys/vm/max_map_count") >> n ? n : 65530;
  }();
  return allowed;
}

/// Mappings of this process; 0: Linux does not say.
std::uint64_t mappings() {
  const int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return 0;
  std::vector<char> text(1 << 16);
  std::uint64_t lines = 0;
  for (ssize_t n; (n = ::read(maps, text.data(), text.size())) > 0;)
    lines += static_cast<std::uint64_t>(std::count(text.begin(), text.begin() + n, '\n'));
  ::close(maps);
  return lines;
}

}  // namespace

bool map_room::take() {
  const std::lock_guard lock(lock_);
  if (left_ == 0) {
    const auto now = std::chrono::steady_clock::now();
    if (now < again_) return false;
    const std::uint64_t there = mappings(), most = most_of_process() / 8 * eighths_;
    left_ = there < most ? (most - there) / by_a_call : 0;
    if (left_ < fewest) {
      left_ = 0;
      const auto end = std::chrono::steady_clock::now();
      again_ = end + pause * (end - now);
      return false;
    }
  }
  --left_;
  return true;
}

}  // namespace grosr::sys
