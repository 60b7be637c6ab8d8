#include "sys/mapped.hpp"

#include <sys/mman.h>

#include <algorithm>

namespace grosr::sys {
namespace {

constexpr std::uint64_t page = 4096;

// Linux maps whole pages; an end beyond the last address is none.
std::uint64_t end_of(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t end = (begin + bytes + page - 1) / page * page;
  return end < begin || bytes > end ? ~std::uint64_t{0} : end;
}

}  // namespace

mapped_ranges::~mapped_ranges() {
  for (const auto& [begin, end] : ends_)
    ::munmap(reinterpret_cast<void*>(begin), static_cast<std::size_t>(end - begin));
}

void mapped_ranges::add(std::uint64_t begin, std::uint64_t bytes) {
  if (bytes == 0) return;
  std::uint64_t end = end_of(begin, bytes);
  std::unique_lock lock(lock_);
  auto at = ends_.upper_bound(begin);
  if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
  while (at != ends_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ends_.erase(at);
  }
  ends_[begin] = end;
}

std::vector<mapped_ranges::range> mapped_ranges::remove(std::uint64_t begin, std::uint64_t bytes) {
  std::vector<range> removed;
  if (bytes == 0) return removed;
  const std::uint64_t end = end_of(begin, bytes);
  std::unique_lock lock(lock_);
  auto at = ends_.upper_bound(begin);
  if (at != ends_.begin() && std::prev(at)->second > begin) --at;
  while (at != ends_.end() && at->first < end) {
    const auto [from, to] = *at;
    at = ends_.erase(at);
    if (from < begin) ends_[from] = begin;
    if (to > end) at = ends_.insert({end, to}).first;
    removed.emplace_back(std::max(from, begin), std::min(to, end));
  }
  return removed;
}

bool mapped_ranges::holds(std::uint64_t begin, std::uint64_t bytes) const {
  if (begin + bytes < begin) return false;
  std::shared_lock lock(lock_);
  auto at = ends_.upper_bound(begin);
  if (at == ends_.begin()) return false;
  --at;
  return begin >= at->first && begin + bytes <= at->second;
}

}  // namespace grosr::sys
