// Memory of the host that kernels map, use by its address, and give back; nothing else of it.
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <sys/mman.h>

#include <thread>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(memory);

struct map_and_use {
  server_ref sys;
  void* other;  // the program's
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    const auto c = sys.warp();
    unsigned i = 0;
    const auto note = [&](long result) {
      if (simt::lane_id() == 0) r[i] = result;
      ++i;
    };
    constexpr std::size_t bytes = 1 << 20;
    constexpr int shares = MAP_PRIVATE | MAP_ANONYMOUS;
    const long at = mmap(c, nullptr, bytes, PROT_READ | PROT_WRITE, shares, -1, 0);
    note(at > 0 && at % 4096 == 0);
    void* const mapped = reinterpret_cast<void*>(at);
    const long file = open(c, "words", O_RDONLY);
    // The host reads to there, and writes from there.
    note(syscall(c, SYS_pread64, file, at + 100, 5, 0));
    const long copy = open(c, "copy", O_CREAT | O_WRONLY, 0600);
    note(syscall(c, SYS_pwrite64, copy, at + 100, 5, 0));
    note(madvise(c, mapped, bytes, MADV_DONTNEED));
    note(syscall(c, SYS_pwrite64, copy, at + 100, 2, 5));  // zeroes
    const long pages = mmap(c, nullptr, 4096, PROT_READ, MAP_PRIVATE, static_cast<int>(file), 0);
    note(pages > 0);
    note(syscall(c, SYS_pwrite64, copy, pages, 5, 7));
    note(munmap(c, reinterpret_cast<void*>(pages), 4096));
    note(munmap(c, mapped, bytes));
    note(syscall(c, SYS_pread64, file, at, 5, 0));
    note(munmap(c, mapped, bytes));
    note(madvise(c, other, 4096, MADV_DONTNEED));
    note(munmap(c, other, 4096));
    note(mmap(c, nullptr, 0, PROT_READ, shares, -1, 0));
    note(mmap(c, nullptr, 4096, PROT_READ | PROT_EXEC, shares, -1, 0));
    note(mmap(c, other, 4096, PROT_READ, shares | MAP_FIXED, -1, 0));
    note(mmap(c, nullptr, 4096, PROT_READ, MAP_PRIVATE, 1, 0));  // a descriptor of the program
  }
};

// What is refused stays what it was.
struct unmap_askew {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const long at = mmap(sys, nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const auto behind = [&](std::uint64_t n) { return reinterpret_cast<void*>(at + n); };
    r[0] = munmap(sys, behind(4096), 1);
    r[1] = munmap(sys, behind(1), 1);
    r[2] = munmap(sys, behind(1), 4095);
    r[3] = munmap(sys, behind(4096), 1);
    r[4] = madvise(sys, behind(4096), 4096, MADV_DONTNEED);
    r[5] = madvise(sys, behind(0), 4096, 100);  // MADV_HWPOISON
    r[6] = madvise(sys, behind(0), 4096, MADV_DONTNEED);
    r[7] = munmap(sys, behind(0), 4096);
    r[8] = munmap(sys, behind(0), 4096);
  }
};

TEST_P(memory, of_the_program_beside_what_is_mapped_stays) {
  server s(where());
  auto r = make<std::int64_t>(9);
  run(1, 32, unmap_askew{s.ref(), r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{-EPERM, -EINVAL, -EINVAL, -EPERM, -EPERM,
                                                    -EPERM, 0, 0, -EPERM}));
}

TEST_P(memory, is_mapped_used_and_unmapped) {
  own_folder f;
  f.write("words", "hello");
  server s(where(), options_for(f));
  auto r = make<std::int64_t>(17);
  void* const other =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<char*>(other) = 'a';
  run(1, 32, map_and_use{s.ref(), other, r.data()});
  EXPECT_EQ(contents(r),
            (std::vector<std::int64_t>{1, 5, 5, 0, 2, 1, 5, 0, 0, -EFAULT, -EPERM, -EPERM, -EPERM,
                                       -EINVAL, -EPERM, -EPERM, -EBADF}));
  EXPECT_EQ(*static_cast<char*>(other), 'a');
  ::munmap(other, 4096);
  EXPECT_EQ(f.read("copy"), std::string("hello\0\0hello", 12));
}

// As many mappings as there can be; Linux merges none of them.
struct map_most {
  server_ref sys;
  std::uint32_t most;  // of a lane
  std::int64_t* at;
  std::uint32_t* left;   // lanes that were not refused
  std::uint32_t* wrong;  // results of unmapping
  bool unmaps;
  GROSR_DEVICE void operator()() const {
    std::int64_t* const mine = at + std::size_t{simt::lane_id()} * most;
    for (std::uint32_t i = 0; i < most && !unmaps; ++i) {
      mine[i] = mmap(sys, nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      if (mine[i] == -ENOMEM) return;
    }
    if (!unmaps) simt::atomic_ref<std::uint32_t>(*left).fetch_add(1, simt::relaxed);
    for (std::uint32_t i = 0; i < most && unmaps && mine[i] > 0; ++i)
      if (munmap(sys, reinterpret_cast<void*>(mine[i]), 4096) != 0)
        simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
  }
};

TEST_P(memory, is_mapped_so_often_that_the_program_can_go_on) {
  std::uint64_t limit = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> limit;
  if (limit == 0 || limit > 100'000) GTEST_SKIP() << "so many mappings would take long";
  const auto map_one = [] {
    return ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  };
  std::vector<void*> before(limit / 16 * 11);
  for (void*& one : before) ASSERT_NE(one = map_one(), MAP_FAILED);
  const auto most = static_cast<std::uint32_t>(limit / 256);
  auto at = make<std::int64_t>(std::size_t{32} * most);
  auto counts = make<std::uint32_t>(2);
  server s(where());
  map_most kernel{s.ref(), most, at.data(), counts.data(), counts.data() + 1, false};
  run(1, 32, kernel);
  EXPECT_EQ(contents(counts)[0], 0u);
  // What the program needs, to start threads for example.
  std::vector<void*> own(limit / 8);
  for (std::size_t i = 0; i < own.size(); ++i) {
    own[i] = map_one();
    ASSERT_NE(own[i], MAP_FAILED) << i;
  }
  std::thread([] {}).join();
  for (void* one : own) ::munmap(one, 4096);
  kernel.unmaps = true;
  run(1, 32, kernel);
  EXPECT_EQ(contents(counts)[1], 0u);
  for (void* one : before) ::munmap(one, 4096);
}

// Linux maps whole pages, which may be huge.
struct map_huge {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE;
    const long at = mmap(sys, nullptr, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    void* const mapped = reinterpret_cast<void*>(at);
    r[0] = at;
    r[1] = munmap(sys, mapped, 4096);
    r[2] = madvise(sys, mapped, 2 << 20, MADV_DONTNEED);
    r[3] = munmap(sys, mapped, 2 << 20);
    r[4] = munmap(sys, mapped, 2 << 20);
    const long file = syscall(sys, SYS_memfd_create, "", MFD_HUGETLB | MFD_HUGE_2MB);
    r[5] = file;
    r[6] = mmap(sys, nullptr, 1, PROT_READ, MAP_SHARED | MAP_NORESERVE, static_cast<int>(file), 0);
    r[7] = mmap(sys, nullptr, 1, PROT_READ, flags | MAP_HUGE_2MB, -1, 0);
  }
};

TEST_P(memory, of_huge_pages_goes_whole) {
  auto r = make<std::int64_t>(8);
  unsigned char there = 0;
  {
    options o;
    o.threads = 2;
    server s(where(), o);
    run(1, 32, map_huge{s.ref(), r.data()});
  }
  const auto got = contents(r);
  if (got[0] < 0 || got[5] < 0 || got[6] < 0 || got[7] < 0) GTEST_SKIP() << "no huge pages here";
  EXPECT_EQ(got[1], -EINVAL);
  EXPECT_EQ(got[2], 0);
  EXPECT_EQ(got[3], 0);
  EXPECT_EQ(got[4], -EPERM);
  for (int i : {6, 7}) EXPECT_EQ(::mincore(reinterpret_cast<void*>(got[i]), 4096, &there), -1) << i;
}

// Lanes map and unmap at a time.
struct churn {
  server_ref sys;
  std::uint32_t* good;
  GROSR_DEVICE void operator()() const {
    std::uint32_t well = 1;
    for (unsigned i = 1; i <= 4; ++i) {
      const std::size_t bytes = 4096u * i;
      const long at =
          mmap(sys, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      void* const mapped = reinterpret_cast<void*>(at);
      well &= at > 0 && madvise(sys, mapped, bytes, MADV_SEQUENTIAL) == 0;
      well &= munmap(sys, mapped, bytes) == 0;
    }
    simt::atomic_ref<std::uint32_t>(*good).fetch_add(well, simt::relaxed);
  }
};

TEST_P(memory, is_mapped_by_many_at_a_time) {
  own_folder f;
  server s(where(), options_for(f));
  auto good = make<std::uint32_t>(1);
  run(2, 64, churn{s.ref(), good.data()});
  EXPECT_EQ(contents(good)[0], 128u);
}

}  // namespace
}  // namespace grosr::sys
