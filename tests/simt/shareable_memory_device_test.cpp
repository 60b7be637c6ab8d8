// Memory of a device that is mapped twice is one memory; what is no such memory is refused.
#include "grosr/simt/shareable_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <utility>

#include "grosr/simt/lanes.hpp"
#include "support/devices.hpp"
#include "support/errors.hpp"

namespace grosr::simt {
namespace {

GROSR_DEVICE_SUITE(shareable_memories);

using words = std::uint32_t;
constexpr std::size_t count = 5000;

struct count_up {
  words* to;
  std::size_t n;
  GROSR_DEVICE void operator()() const {
    for (std::size_t i = thread_id(); i < n; i += 64) to[i] += static_cast<words>(i);
  }
};

std::vector<words> words_of(const shareable_memory& m) {
  std::vector<words> all(m.size() / sizeof(words));
  copy_bytes(m.where(), all.data(), m.data(), m.size());
  return all;
}

TEST_P(shareable_memories, hold_for_all_what_one_writes) {
  shareable_memory second;
  {
    const auto first = shareable_memory::make(where(), count * sizeof(words), true);
    EXPECT_EQ(words_of(first), std::vector<words>(count, 0));
    second = shareable_memory::map(where(), dup(first.file()), first.size(), true);
    EXPECT_NE(first.data(), second.data());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % 256, 0u);
    run(1, 64, count_up{reinterpret_cast<words*>(first.data()), count});
    run(1, 64, count_up{reinterpret_cast<words*>(second.data()), count});
    EXPECT_EQ(words_of(first), words_of(second));
  }
  const std::vector<words> left = words_of(second);  // though whoever made it has let go
  for (words i = 0; i < count; ++i) ASSERT_EQ(left[i], 2 * i);
  const shareable_memory moved = std::move(second);
  EXPECT_EQ(second.data(), nullptr);
  EXPECT_EQ(words_of(moved), left);
}

// As the thread of a port, which has used no GPU before.
TEST_P(shareable_memories, are_made_and_mapped_by_threads_that_do_nothing_else) {
  shareable_memory first, second;
  std::thread([&] { first = shareable_memory::make(where(), count * sizeof(words), true); }).join();
  std::thread([&] {
    second = shareable_memory::map(where(), dup(first.file()), first.size(), true);
  }).join();
  run(1, 64, count_up{reinterpret_cast<words*>(first.data()), count});
  std::thread([&] { first = {}; }).join();
  EXPECT_EQ(words_of(second)[count - 1], count - 1);
  std::thread([&] { second = {}; }).join();
}

TEST_P(shareable_memories, come_and_go) {
  for (int i = 0; i < 50; ++i) {
    const auto m = shareable_memory::make(where(), count * sizeof(words), i % 2 == 0);
    ASSERT_EQ(words_of(m)[count - 1], 0u);
    run(1, 64, count_up{reinterpret_cast<words*>(m.data()), count});
  }
}

TEST_P(shareable_memories, are_refused_where_they_are_something_else) {
  const auto refused = [&](int file, std::size_t bytes) {
    const error e = testing::error_of([&] { shareable_memory::map(where(), file, bytes, true); });
    EXPECT_EQ(e.code(), errc::bad_input) << e.what();
    EXPECT_NE(std::string(e.what()).find("sent no file of memory of"), std::string::npos)
        << e.what();
  };
  refused(-1, 256);
  refused(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), 256);
  const auto one = shareable_memory::make(where(), 256, true);
  refused(dup(one.file()), std::size_t{1} << 30);
}

TEST_P(shareable_memories, are_of_a_device_that_has_one_name_for_all) {
  const device_identity is = identity_of(where());
  EXPECT_EQ(device_with(is), where());
  if (where().is_cuda()) {
    EXPECT_EQ(is.text().size(), 40u) << is.text();
    EXPECT_EQ(is.text().find("GPU-"), 0u);
  } else {
    EXPECT_EQ(is.text(), "host:0");
  }
  device_identity other = is;
  other.uuid[0] ^= 0x80;
  EXPECT_EQ(device_with(other), std::nullopt);
}

}  // namespace
}  // namespace grosr::simt
