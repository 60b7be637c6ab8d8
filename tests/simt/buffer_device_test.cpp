// Buffers are zeroed, aligned, copied exactly, and usable beside a resident kernel.
#include "grosr/simt/buffer.hpp"

#include <algorithm>
#include <numeric>

#include "grosr/simt/lanes.hpp"
#include "grosr/simt/wait.hpp"
#include "support/devices.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(buffers);

TEST_P(buffers, are_zeroed_and_aligned) {
  for (const space s : {space::device, space::pinned}) {
    for (const std::size_t bytes : {1u, 7u, 4096u, 3u << 20}) {
      for (int again = 0; again < 2; ++again) {  // the second time the memory may be a used one
        auto b = make<std::uint8_t>(bytes, s);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data()) % 256, 0u);
        auto all = contents(b);
        EXPECT_EQ(std::count(all.begin(), all.end(), 0), static_cast<std::ptrdiff_t>(bytes));
        std::fill(all.begin(), all.end(), 0xee);
        b.copy_from(all);
      }
    }
  }
}

TEST_P(buffers, copies_are_exact_at_every_size) {
  for (const std::size_t count :
       {1ul, 100ul, (1ul << 18) - 1, 1ul << 18, 3 * (1ul << 18) + 5, 5ul << 18}) {
    std::vector<std::uint32_t> there(count);
    std::iota(there.begin(), there.end(), static_cast<std::uint32_t>(count));
    auto b = make<std::uint32_t>(count + 1);
    auto p = make<std::uint32_t>(count + 1, space::pinned);
    b.copy_from(there);
    copy_bytes(where(), p.data(), b.data(), b.bytes());  // device to pinned
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(p[i], there[i]);
    EXPECT_EQ(p[count], 0u);
    auto second = make<std::uint32_t>(count + 1);
    copy_bytes(where(), second.data(), b.data(), b.bytes());  // inside the device
    std::vector<std::uint32_t> back(count);
    second.copy_to(back);
    EXPECT_EQ(back, there);
  }
}

TEST_P(buffers, move_and_swap_own_once) {
  auto a = make<int>(10);
  int* const data = a.data();
  auto b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(a.data(), nullptr);
  EXPECT_EQ(a.size(), 0u);
  a = std::move(b);
  EXPECT_EQ(a.data(), data);
  buffer<int> empty(where(), space::device, 0);
  EXPECT_EQ(empty.data(), nullptr);
  empty.copy_from({});
}

TEST_P(buffers, too_much_is_an_error_that_says_so) {
  for (const space s : {space::device, space::pinned}) {
    for (const std::size_t bytes : {std::size_t{1} << 50, ~std::size_t{0} / 8}) {
      try {
        make<std::uint64_t>(bytes, s);
        FAIL();
      } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::out_of_memory);
        EXPECT_NE(std::string(e.what()).find("iB of"), std::string::npos) << e.what();
      }
    }
  }
  auto still_works = make<int>(4);
  EXPECT_EQ(contents(still_works)[3], 0);
}

TEST_P(buffers, copies_beyond_the_end_are_errors) {
  auto b = make<int>(4);
  std::vector<int> five(5);
  EXPECT_THROW(b.copy_from(five), error);
  EXPECT_THROW(b.copy_to(five), error);
}

struct pinned_sum {
  const std::uint32_t* in;
  std::uint32_t* out;
  GROSR_DEVICE void operator()() const { out[thread_id()] = in[thread_id()] + 1; }
};

TEST_P(buffers, pinned_memory_has_one_address) {
  auto in = make<std::uint32_t>(64, space::pinned);
  auto out = make<std::uint32_t>(64, space::pinned);
  for (std::uint32_t i = 0; i < 64; ++i) in[i] = i * 7;
  run(1, 64, pinned_sum{in.data(), out.data()});
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], i * 7 + 1);
}

struct stay {
  std::uint32_t* leave;
  GROSR_DEVICE void operator()() const {
    wait_until([&] { return atomic_ref<std::uint32_t, scope::system>(*leave).load(acquire) != 0; },
               forever, nullptr, "the end");
  }
};

TEST_P(buffers, are_copied_beside_a_resident_kernel) {
  auto leave = make<std::uint32_t>(1, space::pinned);
  auto b = make<std::uint32_t>(600'000);
  std::vector<std::uint32_t> there(600'000, 5), back(600'000);
  stream s(where());
  launch(s, {2, 64}, stay{leave.data()});
  b.copy_from(there);
  b.copy_to(back);
  EXPECT_EQ(back, there);
  EXPECT_FALSE(s.done());
  atomic_ref<std::uint32_t, scope::system>(leave[0]).store(1, release);
  s.wait();
}

}  // namespace
}  // namespace grosr::simt
