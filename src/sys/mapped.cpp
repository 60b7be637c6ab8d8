#include "sys/mapped.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "sys/linux_result.hpp"

namespace grosr::sys {
namespace {

// Linux maps whole pages; an end beyond the last address is none.
std::uint64_t end_of(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t end = (begin + bytes + page_bytes - 1) / page_bytes * page_bytes;
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

// Whether unmapping these bytes leaves two parts of one mapping.
bool mapped_ranges::divides(std::uint64_t begin, std::uint64_t end) const {
  const auto at = mappings_at_.upper_bound(begin);
  if (at == mappings_at_.begin()) return false;
  const mapping& m = std::prev(at)->second;
  return m.begin < begin && end < m.end;
}

// What of mappings these bytes were.
std::vector<mapped_ranges::mapping> mapped_ranges::cut_mappings(std::uint64_t begin,
                                                                std::uint64_t end) {
  std::vector<mapping> gone;
  auto at = mappings_at_.upper_bound(begin);
  if (at != mappings_at_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != mappings_at_.end() && at->first < end) {
    const mapping m = at->second;
    at = mappings_at_.erase(at);
    if (m.begin < begin) mappings_at_[m.begin] = {m.begin, begin, m.file};
    if (m.end > end) at = mappings_at_.insert({end, {end, m.end, m.file}}).first;
    gone.push_back({std::max(m.begin, begin), std::min(m.end, end), m.file});
  }
  return gone;
}

bool mapped_ranges::charge(std::uint64_t bytes) {
  if (!mappings_.take(1)) return false;
  if (bytes_.take(bytes)) return true;
  mappings_.give(1);
  return false;
}

void mapped_ranges::discharge(std::uint64_t bytes) {
  bytes_.give(bytes);
  mappings_.give(1);
}

// Lock held. So many mappings are charged as there are; a mapping that was cut at one end stays
// one.
void mapped_ranges::discharge(const std::vector<mapping>& gone) {
  std::uint64_t bytes = 0;
  for (const mapping& m : gone) bytes += m.end - m.begin;
  bytes_.give(bytes);
  charged_mappings(mappings_at_.size());
}

void mapped_ranges::charged_mappings(std::size_t are) {
  if (are < charged_)
    mappings_.give(charged_ - are);
  else
    mappings_.force(are - charged_);
  charged_ = are;
}

// Lock held: they were not unmapped.
void mapped_ranges::put_back(const std::vector<range>& removed, std::vector<mapping>& gone) {
  for (const auto& [from, to] : removed) insert(from, to);
  for (mapping& m : gone) mappings_at_[m.begin] = std::move(m);
  charged_mappings(mappings_at_.size());
}

void mapped_ranges::add(std::uint64_t begin, std::uint64_t bytes,
                        std::shared_ptr<memory_file> file) {
  const std::uint64_t end = end_of(begin, bytes);
  std::vector<mapping> replaced;  // by a raw MAP_FIXED; files end without the lock
  const std::unique_lock lock(lock_);
  replaced = cut_mappings(begin, end);
  insert(begin, end);
  mappings_at_[begin] = {begin, end, std::move(file)};
  ++charged_;
  discharge(replaced);
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
  std::vector<mapping> gone;
  auto left = leaving_.end();
  {
    const std::unique_lock lock(lock_);
    if (!any && bytes != 0 && end_from(begin) < all.second) return -EPERM;
    if (bytes == 0 || begin % page_bytes != 0) return -EINVAL;
    if (!any && ends_.count(begin) == 0 && end_from(begin) != all.second && !room_to_divide_.take())
      return -ENOMEM;
    if (divides(all.first, all.second)) {
      if (!mappings_.take(1)) return -ENOMEM;
      ++charged_;
    }
    removed = cut(all.first, all.second);
    gone = cut_mappings(all.first, all.second);
    const auto calls = std::count_if(uses_.begin(), uses_.end(),
                                     [&](const range& used) { return meet(used, all); });
    if (calls != 0)
      left = leaving_.insert(leaving_.end(), {all, static_cast<std::size_t>(calls) + 1});
  }
  long result = 0;
  if (left != leaving_.end()) {
    result = reserve(left);
  } else {
    const std::uint64_t a[6] = {begin, bytes};
    result = linux_result(SYS_munmap, a);
  }
  const std::unique_lock lock(lock_);
  if (result < 0)
    put_back(removed, gone);
  else
    discharge(gone);
  return result;
}

// Takes the memory away and keeps the addresses, in one step.
long mapped_ranges::reserve(std::list<leaving>::iterator left) {
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
