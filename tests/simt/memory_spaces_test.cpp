// The host backend refuses what works on it and would not on a GPU: device memory that the host
// touches, and atomics of lanes on pinned memory.
#include <cstdint>
#include <string>

#include "grosr/run/runtime.hpp"
#include "grosr/simt/buffer.hpp"
#include "grosr/simt/launch.hpp"
#include "support/errors.hpp"

namespace grosr {
namespace {

template <class Call>
std::string text_of(errc code, Call&& call) {
  const error e = testing::error_of(call);
  EXPECT_EQ(e.code(), code) << e.what();
  return e.what();
}

const device host("host:0");

struct add_one {
  std::uint32_t* to;
  GROSR_DEVICE void operator()() const {
    simt::atomic_ref<std::uint32_t>(*to).fetch_add(1, simt::relaxed);
  }
};

struct add_in_task {
  std::uint32_t* to;
  GROSR_DEVICE void operator()(auto&) const { add_one{to}(); }
};

TEST(memory_spaces, device_memory_has_no_index_on_the_host) {
  simt::buffer<int> there(host, simt::space::device, 4), here(host, simt::space::pinned, 4);
  EXPECT_EQ(here[3] = 7, 7);
  const std::string text = text_of(errc::misuse, [&] { there[0] = 1; });
  EXPECT_NE(text.find("device memory"), std::string::npos) << text;
  EXPECT_NE(text.find("copy_to()"), std::string::npos) << text;
}

TEST(memory_spaces, a_lane_modifies_no_pinned_memory_atomically) {
  simt::buffer<std::uint32_t> there(host, simt::space::device, 1),
      here(host, simt::space::pinned, 1);
  simt::run(host, {2, 64}, add_one{there.data()});
  const std::string text = text_of(errc::misuse, [&] {
    simt::run(host, {2, 64}, add_one{here.data()});
  });
  EXPECT_NE(text.find("memory_spaces_test.cpp:26; "), std::string::npos) << text;
  EXPECT_NE(text.find("pinned host memory"), std::string::npos) << text;
  EXPECT_EQ(here[0], 0u);
}

TEST(memory_spaces, of_each_read_modify_write) {
  simt::buffer<std::uint64_t> here(host, simt::space::pinned, 1);
  const auto refuses = [&](auto f) {
    text_of(errc::misuse, [&] {
      simt::host::run({1, 1, 1}, [&] { f(simt::atomic_ref<std::uint64_t>(here[0])); });
    });
  };
  refuses([](auto a) { a.exchange(1, simt::relaxed); });
  refuses([](auto a) {
    std::uint64_t expected = 0;
    a.compare_exchange(expected, 1, simt::relaxed);
  });
  refuses([](auto a) { a.fetch_sub(1, simt::relaxed); });
  refuses([](auto a) { a.fetch_or(1, simt::relaxed); });
  refuses([](auto a) { a.fetch_and(1, simt::relaxed); });
  refuses([](auto a) { a.fetch_max(1, simt::relaxed); });
  std::uint64_t seen = 0;
  simt::host::run({1, 1, 1}, [&] {  // what crosses the bus
    if (simt::lane_id() != 0) return;
    simt::atomic_ref<std::uint64_t>(here[0]).store(3, simt::release);
    seen = simt::atomic_ref<std::uint64_t>(here[0]).load(simt::acquire);
  });
  EXPECT_EQ(seen, 3u);
  EXPECT_EQ(simt::atomic_ref<std::uint64_t>(here[0]).fetch_add(1, simt::relaxed), 3u);
}

TEST(memory_spaces, a_task_that_does_is_named) {
  simt::buffer<std::uint32_t> here(host, simt::space::pinned, 1);
  runtime<add_in_task> r(host);
  const std::string text =
      text_of(errc::device_lost, [&] { r.submit(add_in_task{here.data()}).wait(); });
  EXPECT_NE(text.find("memory_spaces_test.cpp:26"), std::string::npos) << text;
}

// All of the range comes back.
TEST(memory_spaces, pinned_memory_comes_and_goes) {
  for (int round = 0; round < 50; ++round) {
    simt::buffer<char> one(host, simt::space::pinned, std::size_t{1} + round * 1000),
        two(host, simt::space::pinned, std::size_t{3} << 20);
    one[0] = two[0] = 1;
    simt::buffer<char> three(host, simt::space::pinned, 5);
    two = simt::buffer<char>();
    EXPECT_EQ(three[0] + three[4], 0);
  }
}

}  // namespace
}  // namespace grosr
