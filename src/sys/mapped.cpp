#include "sys/mapped.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "sys/linux_result.hpp"

namespace grosr::sys {
namespace {

constexpr std::uint64_t page = 4096;

// Linux maps whole pages; an end beyond the last address is none.
std::uint64_t end_of(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t end = (begin + bytes + page - 1) / page * page;
  return end < begin || bytes > end ? ~std::uint64_t{0} : end;
}

bool meet(const std::pair<std::uint64_t, std::uint64_t>& a,
          const std::pair<std::uint64_t, std::uint64_t>& b) {
  return a.first < b.second && b.first < a.second;
}

}  // namespace

mapped_ranges::~mapped_ranges() {
  for (const auto& [begin, end] : ends_)
    ::munmap(reinterpret_cast<void*>(begin), static_cast<std::size_t>(end - begin));
}

// The end of the range that `at` is in, or at whose end it is; 0: of none.
std::uint64_t mapped_ranges::end_from(std::uint64_t at) const {
  auto i = ends_.upper_bound(at);
  if (i == ends_.begin()) return 0;
  --i;
  return at <= i->second ? i->second : 0;
}

void mapped_ranges::insert(std::uint64_t begin, std::uint64_t end) {
  auto at = ends_.upper_bound(begin);
  if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
  while (at != ends_.end() && at->first <= end) {
    begin = std::min(begin, at->first);
    end = std::max(end, at->second);
    at = ends_.erase(at);
  }
  ends_[begin] = end;
}

// What of these bytes was in ranges, and is no longer.
std::vector<mapped_ranges::range> mapped_ranges::cut(std::uint64_t begin, std::uint64_t end) {
  std::vector<range> removed;
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

void mapped_ranges::add(std::uint64_t begin, std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::unique_lock lock(lock_);
  insert(begin, end_of(begin, bytes));
}

std::uint64_t mapped_ranges::bytes_from(std::uint64_t at) const {
  const std::shared_lock lock(lock_);
  const std::uint64_t end = end_from(at);
  return end == 0 ? 0 : end - at;
}

std::optional<mapped_ranges::use> mapped_ranges::hold(std::uint64_t begin, std::uint64_t bytes) {
  const std::unique_lock lock(lock_);
  const std::uint64_t end = end_from(begin);
  if (end == 0 || bytes > end - begin) return std::nullopt;
  if (bytes == 0) return use();
  return use(*this, uses_.insert(uses_.end(), {begin, begin + bytes}));
}

// When two calls unmap the same memory, one of them finds it in ranges. It is taken from them
// before it is gone, since the program may get the same addresses at once.
long mapped_ranges::unmap(std::uint64_t begin, std::uint64_t bytes, bool any) {
  const range all{begin, end_of(begin, bytes)};
  std::vector<range> removed;
  auto left = leaving_.end();
  {
    const std::unique_lock lock(lock_);
    if (!any && bytes != 0 && end_from(begin) < all.second) return -EPERM;
    if (bytes == 0 || begin % page != 0) return -EINVAL;
    if (!any && ends_.count(begin) == 0 && end_from(begin) != all.second && !room_to_divide_.take())
      return -ENOMEM;
    removed = cut(all.first, all.second);
    const auto calls = std::count_if(uses_.begin(), uses_.end(),
                                     [&](const range& used) { return meet(used, all); });
    if (calls != 0)
      left = leaving_.insert(leaving_.end(), {all, static_cast<std::size_t>(calls) + 1});
  }
  if (left != leaving_.end()) return reserve(left, removed);
  const std::uint64_t a[6] = {begin, bytes};
  const long result = linux_result(SYS_munmap, a);
  if (result < 0) {
    const std::unique_lock lock(lock_);
    for (const auto& [from, to] : removed) insert(from, to);
  }
  return result;
}

// Takes the memory away and keeps the addresses, in one step.
long mapped_ranges::reserve(std::list<leaving>::iterator left, const std::vector<range>& removed) {
  const std::uint64_t a[6] = {
      left->at.first,    left->at.second - left->at.first,
      PROT_NONE,         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
      ~std::uint64_t{0}, 0};
  const long result = linux_result(SYS_mmap, a);
  const std::unique_lock lock(lock_);
  if (result >= 0) {
    leave(left);
    return 0;
  }
  leaving_.erase(left);
  for (const auto& [from, to] : removed) insert(from, to);
  return result;
}

void mapped_ranges::release(use::place at) {
  const std::unique_lock lock(lock_);
  const range used = *at;
  uses_.erase(at);
  // All that it meets was in ranges when this use began, and counts it.
  for (auto i = leaving_.begin(); i != leaving_.end();) {
    const auto left = i++;
    if (meet(used, left->at)) leave(left);
  }
}

// One call less holds it. Under the lock: who maps next may get these addresses.
void mapped_ranges::leave(std::list<leaving>::iterator left) {
  if (--left->calls != 0) return;
  ::munmap(reinterpret_cast<void*>(left->at.first),
           static_cast<std::size_t>(left->at.second - left->at.first));
  leaving_.erase(left);
}

}  // namespace grosr::sys
