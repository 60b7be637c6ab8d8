// A heap does not end while kernels use it. (On a GPU the driver waits as well.)
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "grosr/alloc/heap.hpp"
#include "grosr/alloc/lifetime.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"
#include "support/scale.hpp"

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(heaps_in_use);

struct use_heap {
  heap_ref heap;
  std::uint32_t turns;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    for (std::uint32_t i = 0; i < turns; ++i) {
      auto* p = static_cast<volatile std::uint32_t*>(heap.allocate(64));
      if (p != nullptr) *p = i;
      if (p == nullptr || *p != i)
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
      heap.deallocate(const_cast<std::uint32_t*>(p));
    }
  }
};

// Ends a heap by `end` while a kernel of some milliseconds uses it.
template <class End>
void expect_to_wait(const device& d, End&& end) {
  std::optional<heap> h(std::in_place, d, 4 << 20);
  simt::buffer<std::uint32_t> wrong(d, simt::space::device, 1);
  simt::stream s(d);
  const std::uint32_t turns = d.is_cuda() ? 10'000 : 500;
  simt::launch(s, {2, 64}, use_heap{h->ref(), turns, wrong.data()});
  end(h);
  EXPECT_TRUE(s.done());
  s.wait();
  std::vector<std::uint32_t> found(1);
  wrong.copy_to(found);
  EXPECT_EQ(found[0], 0u);
}

TEST_P(heaps_in_use, are_not_destroyed) {
  expect_to_wait(where(), [](std::optional<heap>& h) { h.reset(); });
}

TEST_P(heaps_in_use, are_not_destroyed_by_who_held_them_last) {
  std::shared_ptr<const void> last;
  expect_to_wait(where(), [&](std::optional<heap>& h) {
    last = grosr::alloc::lifetime_of(*h);  // as a runtime does
    h.reset();
    last.reset();
  });
}

TEST_P(heaps_in_use, say_that_they_were_moved_from) {
  heap one(where(), 4 << 20);
  const heap two(std::move(one));
  EXPECT_GT(two.bytes(), 0u);
  const auto expect_misuse = [](auto&& call) {
    EXPECT_EQ(testing::error_of(call).code(), errc::misuse);
  };
  expect_misuse([&] { (void)one.ref(); });  // NOLINT(bugprone-use-after-move)
  expect_misuse([&] { (void)one.report(); });
  expect_misuse([&] { (void)one.bytes(); });
  expect_misuse([&] { (void)one.allocate(8); });
  expect_misuse([&] { (void)one.leaks(); });
  one = heap(where(), 1 << 20);
  EXPECT_EQ(one.report().live, 0u);
}

TEST_P(heaps_in_use, are_not_replaced) {
  expect_to_wait(where(), [this](std::optional<heap>& h) { *h = heap(where(), 1 << 20); });
}

}  // namespace
}  // namespace grosr::alloc
