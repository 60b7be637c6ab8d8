// The host allocates from a heap, and so do containers through its resource.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE  // see resource.hpp
#include <string>
#include <thread>
#include <vector>

#include "alloc/blocks.hpp"
#include "grosr/alloc/resource.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"

#if defined(__CUDACC__)
static_assert(cuda::mr::resource_with<grosr::heap_resource, cuda::mr::device_accessible>);
#endif

namespace grosr::alloc {
namespace {

GROSR_DEVICE_SUITE(host_calls);

struct free_one {
  heap_ref heap;
  void* p;
  GROSR_DEVICE void operator()() const {
    if (self() == 0) heap.deallocate(p);
  }
};

TEST_P(host_calls, give_blocks_that_device_code_frees) {
  const heap h(where(), 8 * slab_bytes);
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, 3 * std::size_t{slab_bytes}}) {
    void* p = h.allocate(bytes, 1024);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 1024, 0u);
    EXPECT_EQ(h.report().live, 1u);
    run(1, 32, free_one{h.ref(), p});
    EXPECT_EQ(h.report().live, 0u);
  }
  h.deallocate(nullptr);
  EXPECT_EQ(h.allocate(0), nullptr);
  EXPECT_EQ(h.report().failures, 0u);
}

template <class Call>
void expect_error(Call&& call, errc code, const std::string& text) {
  const error e = testing::error_of(call);
  EXPECT_EQ(e.code(), code);
  EXPECT_NE(std::string(e.what()).find(text), std::string::npos) << e.what();
}

TEST_P(host_calls, say_what_they_were_asked_for) {
  const heap h(where(), 8 * slab_bytes);
  expect_error([&] { (void)h.allocate(9 * slab_bytes); }, errc::out_of_memory, "589824 bytes");
  expect_error([&] { (void)h.allocate(100, 48); }, errc::invalid_option, "alignment 48");
  expect_error([&] { (void)h.allocate(100, 0); }, errc::invalid_option, "alignment 0");
  expect_error([&] { (void)h.allocate(100, 2 * slab_bytes); }, errc::invalid_option, "65536");
  const heap checked(where(), 8 * slab_bytes, {.checked = true});
  expect_error([&] { (void)checked.allocate(100); }, errc::misuse, "checked");
  expect_error([&] { (void)heap_resource{checked}; }, errc::misuse, "checked");
}

TEST_P(host_calls, come_from_many_threads) {
  const heap h(where(), 64 * slab_bytes);
  const heap_resource resource(h);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::vector<void*> got;
      for (unsigned i = 0; i < 20; ++i) got.push_back(resource.allocate(100 * (t + i + 1)));
      for (void* p : got) resource.deallocate(p);
    });
  for (auto& t : threads) t.join();
  const heap_report r = h.report();
  EXPECT_EQ(r.live, 0u);
  EXPECT_EQ(r.foreign_frees + r.double_frees, 0u);
}

TEST_P(host_calls, resources_of_one_heap_are_equal) {
  const heap one(where(), slab_bytes), two(where(), slab_bytes);
  EXPECT_EQ(heap_resource{one}, heap_resource{one});
  EXPECT_NE(heap_resource{one}, heap_resource{two});
}

}  // namespace
}  // namespace grosr::alloc
