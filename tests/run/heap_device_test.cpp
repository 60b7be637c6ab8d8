// Tasks get memory from the heap that their runtime was given, wait for it, and give up.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <vector>

#include "grosr/alloc/heap.hpp"
#include "grosr/run/runtime.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/scale.hpp"

namespace grosr {
namespace {

using namespace std::chrono_literals;

GROSR_DEVICE_SUITE(tasks_and_a_heap);

// Gets a block, hands it to a task that checks and frees it.
struct check_block {
  std::uint32_t* block;
  std::uint32_t* wrong;
  std::uint32_t stamp;
  GROSR_DEVICE void operator()(auto& context) const {
    if (block[0] != stamp || block[20] != stamp)
      simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    context.heap().deallocate(block);
  }
};

struct get_block {
  std::uint32_t* wrong;
  std::uint32_t stamp;
  GROSR_DEVICE int operator()(auto& context) const {
    auto* block = static_cast<std::uint32_t*>(context.heap().allocate(84));
    if (block == nullptr) return -ENOMEM;
    block[0] = block[20] = stamp;
    context.spawn(check_block{block, wrong, stamp});
    return 0;
  }
};

// Takes slabs side by side for good, and waits for them.
struct want_slab {
  std::uint32_t* got;
  std::uint32_t count = 1;
  GROSR_DEVICE int operator()(auto& context) const {
    if (context.heap().allocate(count * alloc::slab_bytes) == nullptr)
      return context.retry(*this) ? 0 : -ENOMEM;
    simt::atomic_ref<std::uint32_t>(*got).fetch_add(1, simt::relaxed);
    return 0;
  }
};

// The same by the threads of a warp together.
struct want_slab_for_warp {
  static constexpr grosr::width width = grosr::width::warp;
  std::uint32_t* got;
  GROSR_DEVICE int operator()(auto& context) const {
    heap_ref heap = context.heap();
    void* p = heap.allocate_group<group::warp>(alloc::slab_bytes);
    if (p == nullptr) return context.retry(*this) ? 0 : -ENOMEM;
    if (context.rank() == 0) simt::atomic_ref<std::uint32_t>(*got).fetch_add(1, simt::relaxed);
    return 0;
  }
};

struct give_slabs {
  void** slabs;
  std::uint32_t count;
  GROSR_DEVICE void operator()(auto& context) const {
    for (std::uint32_t i = 0; i < count; ++i) context.heap().deallocate(slabs[i]);
  }
};

// Which kinds of heap give a block: 1 for heap(), 2 for checked_heap().
struct try_both {
  std::uint32_t* got;
  GROSR_DEVICE void operator()(auto& context) const {
    void* p = context.heap().allocate(64);
    void* q = context.checked_heap(*this).allocate(64);
    *got = (p != nullptr ? 1 : 0) + (q != nullptr ? 2 : 0);
    context.heap().deallocate(p);
    context.checked_heap(*this).deallocate(q);
  }
};

struct leak_block {
  std::uint32_t bytes;
  GROSR_DEVICE void operator()(auto& context) const { context.checked_heap(*this).allocate(bytes); }
};

using heap_runtime = runtime<check_block, get_block, want_slab, want_slab_for_warp, give_slabs,
                             try_both, leak_block>;

runtime_options with(const heap& h) {
  runtime_options o;
  o.heap = &h;
  return o;
}

struct take_all {
  heap_ref heap;
  void** slabs;
  std::uint32_t count;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    for (std::uint32_t i = 0; i < count; ++i) slabs[i] = heap.allocate(alloc::slab_bytes);
  }
};

TEST_P(tasks_and_a_heap, pass_blocks_to_each_other) {
  heap h(where(), 8 << 20);
  auto wrong = make<std::uint32_t>(1);
  const auto n = static_cast<std::uint32_t>(testing::scaled(20'000, 500));
  {
    heap_runtime r(where(), with(h));
    std::vector<get_block> tasks;
    for (std::uint32_t i = 0; i < n; ++i) tasks.push_back({wrong.data(), i * 7});
    r.submit(tasks);
    r.stop();  // counters lag before
    EXPECT_EQ(r.stats().failed, 0u);
    EXPECT_EQ(r.stats().tasks, 2 * n);
  }
  EXPECT_EQ(contents(wrong)[0], 0u);
  const heap_report report = h.report();
  EXPECT_EQ(report.live, 0u);
  EXPECT_EQ(report.foreign_frees + report.double_frees, 0u);
}

TEST_P(tasks_and_a_heap, wait_until_memory_is_freed) {
  constexpr std::uint32_t slabs = 32;
  heap h(where(), slabs * std::size_t{alloc::slab_bytes});
  auto held = make<void*>(slabs);
  auto got = make<std::uint32_t>(1);
  run(1, 32, take_all{h.ref(), held.data(), slabs});
  runtime_options o = with(h);
  o.memory_wait = 30s;
  heap_runtime r(where(), o);
  r.submit(std::vector<want_slab>(slabs, want_slab{got.data()}));
  EXPECT_FALSE(r.wait_all_for(100ms));
  r.submit(give_slabs{held.data(), slabs});
  r.stop();
  EXPECT_EQ(contents(got)[0], slabs);
  EXPECT_EQ(r.stats().failed, 0u);
}

TEST_P(tasks_and_a_heap, wait_for_room_side_by_side) {
  // Between the runs that are wanted a slab stays held: however late a task looks, it can take only
  // a whole one.
  constexpr std::uint32_t wanted = 4, runs = 8, apart = wanted + 1, slabs = runs * apart;
  heap h(where(), slabs * std::size_t{alloc::slab_bytes});
  auto held = make<void*>(slabs);
  auto got = make<std::uint32_t>(1);
  run(1, 32, take_all{h.ref(), held.data(), slabs});
  std::vector<void*> in_order = contents(held);  // which slabs are taken first depends on the SM
  std::sort(in_order.begin(), in_order.end());
  held.copy_from(in_order);
  runtime_options o = with(h);
  o.memory_wait = 2s;
  heap_runtime r(where(), o);
  r.submit(std::vector<want_slab>(runs, want_slab{got.data(), wanted}));
  for (std::uint32_t i = 0; i < runs * wanted; i += 2) {  // somebody frees, longer than memory_wait
    EXPECT_FALSE(r.wait_all_for(180ms));
    r.submit(give_slabs{held.data() + i / wanted * apart + i % wanted, 2});
  }
  r.stop();
  EXPECT_EQ(contents(got)[0], runs);
  EXPECT_EQ(r.stats().failed, 0u);
}

// More tasks than slabs: those without one say so, each once.
template <class Task>
void expect_to_give_up(const device& d, std::uint32_t too_many) {
  constexpr std::uint32_t slabs = 32;
  heap h(d, slabs * std::size_t{alloc::slab_bytes});
  simt::buffer<std::uint32_t> got(d, simt::space::device, 1);
  runtime_options o = with(h);
  o.memory_wait = 50ms;
  heap_runtime r(d, o);
  r.submit(std::vector<Task>(slabs + too_many, Task{got.data()}));
  ASSERT_TRUE(r.wait_all_for(60s));
  r.stop();
  std::vector<std::uint32_t> taken(1);
  got.copy_to(taken);
  EXPECT_EQ(taken[0], slabs);
  EXPECT_EQ(r.stats().failed, too_many);
  EXPECT_EQ(r.errors().at(0).code, -ENOMEM);
}

TEST_P(tasks_and_a_heap, give_up_when_nobody_frees) { expect_to_give_up<want_slab>(where(), 8); }

TEST_P(tasks_and_a_heap, ask_again_once_a_warp) {
  expect_to_give_up<want_slab_for_warp>(where(), 3);
}

TEST_P(tasks_and_a_heap, have_no_memory_without_one) {
  auto wrong = make<std::uint32_t>(1);
  heap_runtime r(where());
  const ticket t = r.submit(get_block{wrong.data(), 1});
  t.wait();
  EXPECT_TRUE(t.failed());
}

TEST_P(tasks_and_a_heap, have_only_the_kind_it_is_of) {
  for (const bool checked : {false, true}) {
    heap h(where(), 8 << 20, {checked});
    auto got = make<std::uint32_t>(1);
    heap_runtime r(where(), with(h));
    r.submit(try_both{got.data()}).wait();
    r.stop();
    EXPECT_EQ(contents(got)[0], checked ? 2u : 1u);
    EXPECT_EQ(h.report().live, 0u);
    EXPECT_TRUE(h.findings().empty());
  }
}

TEST_P(tasks_and_a_heap, keep_it_alive) {
  auto wrong = make<std::uint32_t>(1);
  std::optional<heap> h(std::in_place, where(), 8 << 20);
  heap_runtime r(where(), with(*h));
  h.reset();
  r.submit(std::vector<get_block>(100, get_block{wrong.data(), 5}));
  r.stop();
  EXPECT_EQ(r.stats().failed, 0u);
  EXPECT_EQ(contents(wrong)[0], 0u);
}

TEST_P(tasks_and_a_heap, run_beside_the_calls_of_the_host) {
  heap h(where(), 8 << 20);
  auto wrong = make<std::uint32_t>(1);
  heap_runtime r(where(), with(h));
  for (std::uint32_t i = 0; i < 50; ++i) {
    r.submit(std::vector<get_block>(20, get_block{wrong.data(), i}));
    void* p = h.allocate(1000);
    EXPECT_NE(p, nullptr);
    h.deallocate(p);
  }
  r.stop();
  EXPECT_EQ(contents(wrong)[0], 0u);
  EXPECT_EQ(h.report().live, 0u);
}

TEST_P(tasks_and_a_heap, are_named_by_a_checked_one) {
  heap h(where(), 8 << 20, {true});
  {
    heap_runtime r(where(), with(h));
    r.submit(leak_block{77});
    r.wait_all();
  }
  const auto leaks = h.leaks();
  ASSERT_EQ(leaks.size(), 1u);
  EXPECT_EQ(leaks[0].bytes, 77u);
  EXPECT_NE(leaks[0].allocated_by.find("leak_block"), std::string::npos) << leaks[0].text();
}

TEST(heap_options, are_checked) {
  runtime_options o;
  o.memory_wait = -1us;
  const error e = testing::error_of([&] { runtime<leak_block> r(device(), o); });
  EXPECT_EQ(e.code(), errc::invalid_option);
  EXPECT_NE(std::string(e.what()).find("memory_wait"), std::string::npos) << e.what();
}

}  // namespace
}  // namespace grosr
