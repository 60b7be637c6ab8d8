#include "work/blocks.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"
#include "work/block_kernels.hpp"

namespace grosr::tool {

using namespace block_kernels;

namespace {

// Threads of a block: few threads are spread over all SMs.
unsigned block_for(const device& d, std::uint32_t threads) {
  if (!d.is_cuda()) return 64;
  const unsigned warps = threads / d.properties().sms / 32;
  return 32 * std::clamp(warps, 1u, 8u);
}

}  // namespace

struct block_traffic::state {
  state(const device& d, const heap* from, std::uint32_t threads, std::uint32_t a_thread)
      : where(d),
        heap(from),
        stream(d),
        block(block_for(d, threads)),
        grid((threads + block - 1) / block),
        blocks(d, simt::space::device, std::size_t{threads} * a_thread),
        lengths(d, simt::space::device, std::size_t{threads} * a_thread),
        got(d, simt::space::device, std::size_t{grid} * block),
        wrong(d, simt::space::device, std::size_t{grid} * block),
        mail(d, simt::space::device, std::size_t{grid} * block),
        began(d, simt::space::device, grid),
        ended(d, simt::space::device, grid),
        a{blocks.data(), lengths.data(), got.data(), wrong.data(), mail.data(),
          began.data(),  ended.data(),   threads,    a_thread} {}

  template <class Kernel, class Source, class... More>
  traffic launch(const Source& source, block_sizes sizes, More... more) {
    simt::launch<256, 3>(stream, {grid, block}, Kernel{{source, a, sizes, round}, more...});
    stream.wait();
    std::vector<std::uint64_t> from(grid), to(grid);
    began.copy_to(from);
    ended.copy_to(to);
    traffic t;
    t.us = static_cast<double>(*std::max_element(to.begin(), to.end()) -
                               *std::min_element(from.begin(), from.end())) /
           1e3;
    return t;
  }

  // Only what comes from a heap is stamped.
  template <template <class, bool> class Kernel, class... More>
  traffic launch_as(block_sizes sizes, bool stamps, More... more) {
    if (heap == nullptr) return launch<Kernel<from_device, false>>(from_device{}, sizes, more...);
    const from_heap source{heap->ref()};
    if (!stamps) return launch<Kernel<from_heap, false>>(source, sizes, more...);
    return launch<Kernel<from_heap, true>>(source, sizes, more...);
  }

  std::uint64_t sum_of(const simt::buffer<std::uint32_t>& words) const {
    std::vector<std::uint32_t> all(a.threads);
    words.copy_to(all);
    std::uint64_t sum = 0;
    for (std::uint32_t w : all) sum += w;
    return sum;
  }

  device where;
  const class heap* heap;
  simt::stream stream;
  unsigned block, grid;
  simt::buffer<void*> blocks;
  simt::buffer<std::uint32_t> lengths, got, wrong;
  simt::buffer<std::uint64_t> mail, began, ended;
  arrays a;
  std::uint32_t round = 0;
  std::uint64_t held = 0;  // blocks in arrays; 0: what arrays say does not count
};

block_traffic::block_traffic(const device& d, const heap* from, std::uint32_t threads,
                             std::uint32_t a_thread)
    : state_(std::make_unique<state>(d, from, threads, a_thread)) {}
block_traffic::~block_traffic() = default;

void block_traffic::reserve_native(const device& d, std::size_t bytes) {
  simt::reserve_native_heap(d, bytes);
}

std::uint64_t block_traffic::count() const { return state_->blocks.size(); }

traffic block_traffic::allocate(block_sizes sizes, bool stamp) {
  traffic t = state_->launch_as<fill>(sizes, stamp, true);
  t.asked = count();
  t.got = state_->held = state_->sum_of(state_->got);
  return t;
}

traffic block_traffic::refill(block_sizes sizes, bool stamp) {
  if (state_->held == 0) return allocate(sizes, stamp);
  ++state_->round;
  traffic t = state_->launch_as<fill>(sizes, stamp, false);
  t.asked = count() - state_->held;
  t.got = state_->sum_of(state_->got);
  state_->held += t.got;
  return t;
}

traffic block_traffic::release(std::uint32_t share, std::uint32_t of, bool check) {
  traffic t = state_->launch_as<block_kernels::release>({16, 16}, check, share, of);
  t.asked = t.got = share < of ? state_->sum_of(state_->got) : state_->held;
  state_->held -= t.got;
  if (check) t.wrong = state_->sum_of(state_->wrong);
  return t;
}

traffic block_traffic::churn(block_sizes sizes, std::uint32_t turns, bool check) {
  if (check) ++state_->round;
  traffic t = state_->launch_as<block_kernels::churn>(sizes, check, turns);
  t.asked = std::uint64_t{state_->a.threads} * turns;
  t.got = state_->sum_of(state_->got);
  if (check) t.wrong = state_->sum_of(state_->wrong);
  return t;
}

traffic block_traffic::pass_on(block_sizes sizes, std::uint32_t turns) {
  traffic t = state_->launch<pass<from_heap>>(from_heap{state_->heap->ref()}, sizes, turns);
  t.asked = std::uint64_t{state_->grid} / 2 * state_->block * turns;
  t.got = state_->sum_of(state_->got);
  t.wrong = state_->sum_of(state_->wrong);
  return t;
}

traffic block_traffic::get_one(std::size_t bytes) {
  simt::launch(state_->stream, {1, 32},
               one{state_->heap->ref(), bytes, state_->got.data(), state_->wrong.data()});
  state_->stream.wait();
  std::vector<std::uint32_t> got(1), wrong(1);
  state_->got.copy_to(got);
  state_->wrong.copy_to(wrong);
  return {0, 1, got[0], wrong[0]};
}

std::string block_traffic::overlap(block_sizes sizes) {
  if (state_->heap == nullptr)
    state_->launch<tell_lengths<from_device>>(from_device{}, sizes);
  else
    state_->launch<tell_lengths<from_heap>>(from_heap{state_->heap->ref()}, sizes);
  std::vector<void*> blocks(state_->blocks.size());
  std::vector<std::uint32_t> lengths(blocks.size());
  state_->blocks.copy_to(blocks);
  state_->lengths.copy_to(lengths);
  std::vector<std::pair<std::uintptr_t, std::uint32_t>> all;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (blocks[i] != nullptr)
      all.emplace_back(reinterpret_cast<std::uintptr_t>(blocks[i]), lengths[i]);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].first - all[i - 1].first < all[i - 1].second)
      return "two blocks overlap, one of " + std::to_string(all[i - 1].second) + " bytes";
  return "";
}

std::uint64_t block_traffic::stuff(const std::vector<std::uint32_t>& sizes) {
  std::uint64_t all = 0;
  const unsigned grid = std::exchange(state_->grid, 1u), block = std::exchange(state_->block, 32u);
  state_->round = 0;
  for (const std::uint32_t size : sizes) {
    if (state_->heap == nullptr)
      state_->launch<block_kernels::stuff<from_device>>(from_device{}, {size, size});
    else
      state_->launch<block_kernels::stuff<from_heap>>(from_heap{state_->heap->ref()}, {size, size});
    ++state_->round;
    std::vector<std::uint32_t> got(32);
    state_->got.copy_to(got);
    for (const std::uint32_t n : got) all += n;
  }
  state_->grid = grid, state_->block = block;
  return all;
}

void block_traffic::empty() {
  const unsigned grid = std::exchange(state_->grid, 1u), block = std::exchange(state_->block, 32u);
  if (state_->heap == nullptr)
    state_->launch<block_kernels::empty<from_device>>(from_device{}, {16, 16});
  else
    state_->launch<block_kernels::empty<from_heap>>(from_heap{state_->heap->ref()}, {16, 16});
  state_->grid = grid, state_->block = block;
}

traffic block_traffic::ask_in_vain(std::uint32_t bytes, std::uint32_t turns) {
  traffic t = state_->heap == nullptr ? state_->launch<block_kernels::ask_in_vain<from_device>>(
                                            from_device{}, {bytes, bytes}, turns)
                                      : state_->launch<block_kernels::ask_in_vain<from_heap>>(
                                            from_heap{state_->heap->ref()}, {bytes, bytes}, turns);
  t.asked = std::uint64_t{state_->a.threads} * turns;
  t.got = state_->sum_of(state_->got);
  return t;
}

std::string trouble(const heap& h) {
  const heap_report r = h.report();
  const auto number_of = [](std::uint64_t n, const char* what) {
    return n == 0 ? "" : std::to_string(n) + " " + what;
  };
  std::string wrong = number_of(r.live, "blocks are in use after all were freed");
  if (wrong.empty()) wrong = number_of(r.foreign_frees, "frees of what is no block");
  if (wrong.empty()) wrong = number_of(r.double_frees, "frees of blocks that are free");
  if (wrong.empty()) wrong = number_of(r.bad_alignments, "bad alignments");
  return wrong;
}

}  // namespace grosr::tool
