#include "flow/block_pool.hpp"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "flow/block_heap.hpp"
#include "flow/locked.hpp"

namespace grosr::flow {
namespace {

constexpr std::size_t rounded(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

bool block_buffer::is_done_with() const noexcept {
  bool done = true;
  each_user([&](const simt::stream_point& p) {
    try {
      done = done && p.has_happened();
    } catch (...) {  // its stream has failed, and uses nothing any more
    }
  });
  return done;
}

void block_buffer::wait() const noexcept {
  each_user([](const simt::stream_point& p) {
    try {
      p.wait();
    } catch (...) {  // likewise
    }
  });
}

block_pool::~block_pool() {
  for (auto& [bytes, s] : sizes_)
    while (auto b = any_idle(s)) release(*b);
  free_borrowed(true);
}

void block_pool::free_borrowed(bool all) noexcept {
  if (!has_borrowed_.load(std::memory_order_relaxed)) return;
  std::vector<block_buffer> seen, used;
  {
    const auto lock = locked(mutex_);
    seen.swap(borrowed_);
    has_borrowed_.store(false, std::memory_order_relaxed);
  }
  // Without the lock: what frees one may give others back.
  for (block_buffer& b : seen)
    if (all)
      b.wait();
    else if (!b.is_done_with())
      used.push_back(std::move(b));
  seen.clear();
  if (used.empty()) return;
  const auto lock = locked(mutex_);
  std::move(used.begin(), used.end(), std::back_inserter(borrowed_));
  has_borrowed_.store(true, std::memory_order_relaxed);
}

/// With the lock.
block_buffer block_pool::leave_home(of_size& s, homes::iterator at) {
  block_buffer left = std::move(at->second);
  s.left.push_back(s.at_home.extract(at));
  return left;
}

/// With the lock. Of those that have a home only where there are no others.
std::optional<block_buffer> block_pool::any_idle(of_size& s) {
  std::optional<block_buffer> b;
  if (!s.idle.empty()) {
    b = std::move(s.idle.front());
    s.idle.pop_front();
  } else if (!s.at_home.empty()) {
    b = leave_home(
        s, std::min_element(s.at_home.begin(), s.at_home.end(), [](const auto& x, const auto& y) {
          return x.second.given < y.second.given;
        }));
  }
  return b;
}

block_buffer block_pool::take(std::size_t bytes, std::uint64_t home) {
  const std::size_t size = rounded(bytes);
  {
    const auto lock = locked(mutex_);
    of_size& s = sizes_[size];
    if (const auto own = home == 0 ? s.at_home.end() : s.at_home.find(home); own != s.at_home.end())
      return leave_home(s, own);
    if (auto b = any_idle(s)) {
      b->home = home;
      return std::move(*b);
    }
  }
  block_buffer b = allocate(size);
  b.home = home;
  const auto lock = locked(mutex_);
  ++sizes_[size].all;
  held_ += size;
  return b;
}

void block_pool::give(block_buffer b) noexcept {
  if (b.data == nullptr) return;
  // In this order: the last who has the heap is to find there what it waits for.
  if (b.heap != nullptr) b.heap->give_back(b);
  const auto lock = locked(mutex_);
  if (b.lender) {
    borrowed_.push_back(std::move(b));
    has_borrowed_.store(true, std::memory_order_relaxed);
    return;
  }
  of_size& s = sizes_[b.bytes];
  b.given = ++given_;
  if (b.home != 0 && !s.at_home.contains(b.home)) {
    if (s.left.empty()) {
      s.at_home.emplace(b.home, std::move(b));
      return;
    }
    s.left.back().key() = b.home;
    s.left.back().mapped() = std::move(b);
    s.at_home.insert(std::move(s.left.back()));
    s.left.pop_back();
    return;
  }
  b.home = 0;
  s.idle.push_back(std::move(b));
}

void block_pool::reserve(std::size_t bytes, std::size_t buffers) {
  const std::size_t size = rounded(bytes);
  std::size_t lack = 0;
  {
    const auto lock = locked(mutex_);
    of_size& s = sizes_[size];
    // Those that nobody was promised, and nobody has.
    const std::size_t spare = s.all > s.promised ? std::min(s.all - s.promised, idle_of(s)) : 0;
    lack = buffers > spare ? buffers - spare : 0;
    s.promised += buffers;
    s.all += lack;
  }
  try {
    for (; lack != 0; --lack) {
      block_buffer b = allocate(size);
      const auto lock = locked(mutex_);
      held_ += size;
      sizes_[size].idle.push_back(std::move(b));
    }
  } catch (...) {
    {
      const auto lock = locked(mutex_);
      sizes_[size].all -= lack;
    }
    unreserve(bytes, buffers);
    throw;
  }
}

void block_pool::unreserve(std::size_t bytes, std::size_t buffers) noexcept {
  const std::size_t size = rounded(bytes);
  std::vector<block_buffer> freed;
  {
    const auto lock = locked(mutex_);
    of_size& s = sizes_[size];
    s.promised -= buffers;
    for (; s.all > s.promised && idle_of(s) != 0; --s.all) {
      freed.push_back(std::move(*any_idle(s)));
      held_ -= size;
    }
  }
  for (block_buffer& b : freed) release(b);
}

std::size_t block_pool::bytes() const {
  const auto lock = locked(mutex_);
  return held_;
}

std::size_t block_pool::idle() const {
  const auto lock = locked(mutex_);
  std::size_t n = 0;
  for (const auto& [bytes, s] : sizes_) n += idle_of(s);
  return n;
}

block_buffer block_pool::allocate(std::size_t size) const {
  block_buffer b;
  b.data = simt::allocate_bytes(device_, space_, size);
  b.bytes = size;
  return b;
}

void block_pool::release(block_buffer& b) noexcept {
  b.wait();
  simt::free_bytes(device_, space_, b.data);
}

}  // namespace grosr::flow
