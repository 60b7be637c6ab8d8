// Ordinary work goes on beside a resident runtime: memory taken and given back, other kernels,
// copies, other runtimes.
#include <atomic>
#include <chrono>
#include <thread>

#include "run/tasks.hpp"
#include "support/scale.hpp"

namespace grosr::testing {
namespace {

using namespace std::chrono_literals;

GROSR_RUNTIME_SUITE(beside_a_runtime);

struct doubles {
  std::uint32_t* words;
  GROSR_DEVICE void operator()() const {
    words[simt::block_id() * simt::block_size() + simt::thread_id()] *= 2;
  }
};

// What a program does with a device apart from the runtime.
void use_device(device d) {
  constexpr std::uint32_t n = 4 * 256;
  std::vector<std::uint32_t> all(n);
  for (std::uint32_t i = 0; i < n; ++i) all[i] = i;
  simt::buffer<std::uint32_t> words(d, simt::space::device, n);
  const simt::buffer<std::uint32_t> large(d, simt::space::device, 1 << 22);
  const simt::buffer<std::uint32_t> pinned(d, simt::space::pinned, 1000);
  words.copy_from(all);
  simt::run(d, {4, 256}, doubles{words.data()});
  words.copy_to(all);
  for (std::uint32_t i = 0; i < n; ++i) ASSERT_EQ(all[i], 2 * i);
}

TEST_P(beside_a_runtime, memory_and_kernels_work) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  for (std::uint32_t i = 1; i <= scaled(10, 3); ++i) {
    rt->submit(tree{leaves.data(), 10});
    use_device(where());
    rt->wait_all();
    EXPECT_EQ(contents(leaves)[0], i * 1024);
    use_device(where());
  }
}

// It stays resident: kernels and copies do not wait for it, and park() leaves the GPU to the rest.
TEST_P(beside_a_runtime, that_never_leaves_kernels_and_copies_work) {
  runtime_options o = small_options();
  o.idle_timeout = 0us;
  auto& leaves = keep<std::uint32_t>(1);
  auto& words = keep<std::uint32_t>(1024);
  simt::fit<1024, 1, doubles>(where(), 256);
  simt::stream s(where());
  auto rt = start(o);
  rt->submit(tree{leaves.data(), 10});
  for (int i = 0; i < 5; ++i) {
    std::vector<std::uint32_t> all(1024, 3);
    words.copy_from(all);
    simt::launch(s, {4, 256}, doubles{words.data()});
    s.wait();
    words.copy_to(all);
    EXPECT_EQ(all, std::vector<std::uint32_t>(1024, 6));
    EXPECT_TRUE(rt->resident());
    rt->submit(tree{leaves.data(), 10}).wait();
  }
  rt->park();
  use_device(where());
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], 6 * 1024u);
  rt->park();
}

TEST_P(beside_a_runtime, that_gets_work_in_bursts_memory_works) {
  auto rt = start();
  auto& leaves = keep<std::uint32_t>(1);
  std::atomic<bool> over{false};
  std::atomic<std::uint32_t> submitted{0};
  std::thread submitter([&] {
    while (!over) {
      for (int i = 0; i < 20; ++i) rt->submit(tree{leaves.data(), 6});
      submitted += 20;
      std::this_thread::sleep_for(50ms);
    }
  });
  for (std::uint32_t i = 0; i < scaled(10, 3); ++i) use_device(where());
  over = true;
  submitter.join();
  rt->wait_all();
  EXPECT_EQ(contents(leaves)[0], submitted * 64);
}

TEST_P(beside_a_runtime, another_runtime_works) {
  auto& leaves = keep<std::uint32_t>(2);
  auto first = start(), second = start();
  std::thread other([&] {
    for (std::uint32_t i = 0; i < scaled(50, 10); ++i) {
      second->submit(tree{leaves.data() + 1, 8});
      if (i % 5 == 0) second->wait_all();
    }
    second->wait_all();
  });
  for (std::uint32_t i = 0; i < scaled(50, 10); ++i) {
    first->submit(tree{leaves.data(), 8});
    if (i % 7 == 0) first->wait_all();
  }
  first->wait_all();
  other.join();
  const auto n = static_cast<std::uint32_t>(scaled(50, 10)) * 256;
  EXPECT_EQ(contents(leaves), (std::vector<std::uint32_t>{n, n}));
  second->stop();
  first->submit(tree{leaves.data(), 3});
  first->stop();
  EXPECT_EQ(contents(leaves)[0], n + 8);
}

TEST_P(beside_a_runtime, others_come_and_go) {
  auto lasting = start();
  auto& leaves = keep<std::uint32_t>(1);
  for (int i = 0; i < 8; ++i) {
    lasting->submit(tree{leaves.data(), 8});
    auto passing = start();
    passing->submit(tree{leaves.data(), 8});
  }
  lasting->wait_all();
  EXPECT_EQ(contents(leaves)[0], 16 * 256u);
}

}  // namespace
}  // namespace grosr::testing
