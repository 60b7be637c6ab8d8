#include <algorithm>
#include <iterator>
#include <utility>

#include "flow/block_heap.hpp"

namespace grosr::flow {
namespace {

/// What fits into the parameters of a kernel.
constexpr std::size_t most_frees = 256;

struct free_blocks {
  heap_ref heap;
  std::uint32_t count;
  void* blocks[most_frees];

  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = simt::lane_id(); i < count; i += simt::warp_size)
      heap.deallocate(blocks[i]);
  }
};

/// About what the heap takes for a block.
std::size_t rounded(std::size_t bytes) {
  const std::size_t to = bytes > alloc::slab_bytes ? alloc::slab_bytes : 256;
  return (bytes + to - 1) / to * to;
}

}  // namespace

block_heap::block_heap(device d, std::size_t bytes)
    : heap_(d, bytes), ref_(heap_.ref()), frees_(d) {
  simt::fit<32, 1, free_blocks>(d, 32);  // or a resident kernel would keep it from being loaded
}

block_heap::~block_heap() {
  for (const block_buffer& b : given_back_) b.wait();
}

block_buffer block_heap::lend(void* data, std::size_t bytes) {
  block_buffer b;
  b.data = data;
  b.bytes = bytes;
  b.lender = shared_from_this();
  b.heap = this;
  in_use_.fetch_add(rounded(bytes), std::memory_order_relaxed);
  return b;
}

void block_heap::give_back(block_buffer b) noexcept {
  b.lender = nullptr;  // the list does not keep the heap
  std::lock_guard lock(given_back_mutex_);
  given_back_.push_back(std::move(b));
}

void block_heap::free_given_back(bool all) {
  std::vector<block_buffer> seen;
  {
    std::lock_guard lock(given_back_mutex_);
    seen.swap(given_back_);
  }
  // Asking streams takes locks, and so does waiting.
  const auto used = std::partition(seen.begin(), seen.end(),
                                   [&](const block_buffer& b) { return all || b.is_done_with(); });
  {
    std::lock_guard lock(given_back_mutex_);
    std::move(used, seen.end(), std::back_inserter(given_back_));
  }
  seen.erase(used, seen.end());
  if (seen.empty()) return;
  if (all)
    for (const block_buffer& b : seen)
      b.each_user([&](const simt::stream_point& p) {
        try {
          frees_.wait_for(p);
        } catch (...) {  // its stream has failed, and uses nothing any more
        }
      });
  for (std::size_t first = 0; first < seen.size(); first += most_frees) {
    free_blocks k{ref_, 0, {}};
    for (std::size_t i = first; i < seen.size() && k.count < most_frees; ++i) {
      k.blocks[k.count++] = seen[i].data;
      in_use_.fetch_sub(rounded(seen[i].bytes), std::memory_order_relaxed);
    }
    simt::launch<32, 1>(frees_.queue(), {1, 32}, k);
  }
  freed_ = frees_.mark();
}

void block_heap::free_before(simt::timeline& t) {
  std::lock_guard one_at_a_time(frees_mutex_);
  free_given_back(in_use() > bytes() / 4);
  t.wait_for(freed_);
}

heap_report block_heap::report() {
  simt::stream_point freed;
  {
    std::lock_guard one_at_a_time(frees_mutex_);
    free_given_back(true);
    freed = freed_;
  }
  freed.wait();  // without the lock, which runs that begin want
  return heap_.report();
}

}  // namespace grosr::flow
