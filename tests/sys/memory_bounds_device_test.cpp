// Kernels map and fill as much memory of the host as the server's options say, and not more; what
// they give back they may have again.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>

#include <vector>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(memory_bounds);

constexpr std::size_t page = 4096;
constexpr int read_write = PROT_READ | PROT_WRITE, own = MAP_PRIVATE | MAP_ANONYMOUS;

GROSR_DEVICE void* at(long address, std::size_t more = 0) {
  return reinterpret_cast<void*>(static_cast<std::uint64_t>(address) + more);
}
GROSR_DEVICE long map(const server_ref& sys, std::size_t bytes, long file = -1) {
  const int flags = file < 0 ? own : MAP_SHARED;
  return mmap(sys, nullptr, bytes, read_write, flags, static_cast<int>(file), 0);
}

struct map_to_the_bound {
  server_ref sys;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    const long first = map(sys, 8 * page), second = map(sys, 8 * page);
    r[i++] = first > 0 && second > 0;
    r[i++] = map(sys, 1);                                 // the bytes
    r[i++] = munmap(sys, at(first, 2 * page), 2 * page);  // two mappings are left of one
    r[i++] = munmap(sys, at(second, 2 * page), page);     // one more would be a fourth
    const long third = map(sys, 1);                       // likewise
    r[i++] = third;
    r[i++] = munmap(sys, at(first), 2 * page);
    r[i++] = map(sys, 2 * page) > 0;
    r[i++] = munmap(sys, at(second), page);
    r[i++] = munmap(sys, at(first, 4 * page), 4 * page);
    r[i++] = map(sys, 8 * page);
    r[i++] = map(sys, 7 * page) > 0;
  }
};

TEST_P(memory_bounds, of_bytes_and_of_mappings) {
  server s(where(), {.mapped_bytes = 16 * page, .mappings = 3});
  auto r = make<std::int64_t>(11);
  run(1, 32, map_to_the_bound{s.ref(), r.data()});
  EXPECT_EQ(contents(r),
            (std::vector<std::int64_t>{1, -ENOMEM, 0, -ENOMEM, -ENOMEM, 0, 1, 0, 0, -ENOMEM, 1}));
}

struct fill_to_the_bound {
  server_ref sys;
  const char* name;  // shared
  char* text;        // likewise, 17 pages
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    const auto create = [&] { return static_cast<int>(syscall(sys, SYS_memfd_create, name, 0)); };
    const int one = create(), other = create();
    r[i++] = one >= 0 && other >= 0;
    r[i++] = write(sys, one, text, 8 * page);
    r[i++] = pwrite(sys, one, text, page, 0);  // it is not longer
    r[i++] = pwrite(sys, other, text, 8 * page + 1, 0);
    r[i++] = ftruncate(sys, other, 1 << 30);
    r[i++] = fallocate(sys, other, FALLOC_FL_KEEP_SIZE, 0, 9 * page);
    r[i++] = lseek(sys, other, 8 * page, SEEK_SET);
    r[i++] = write(sys, other, text, 1);
    r[i++] = pwrite(sys, other, text, 8 * page, 0);
    r[i++] = create();
    r[i++] = map(sys, 1);
    r[i++] = ftruncate(sys, one, 4 * page);
    const long mapped = map(sys, page, one);
    r[i++] = mapped > 0;
    r[i++] = map(sys, 4 * page);
    // The file's memory stays as long as a descriptor or a mapping.
    const int again = static_cast<int>(syscall(sys, SYS_dup, one));
    r[i++] = close(sys, one);
    r[i++] = map(sys, 4 * page);
    r[i++] = close(sys, again);
    r[i++] = map(sys, 4 * page);
    r[i++] = munmap(sys, at(mapped), page);
    r[i++] = map(sys, 8 * page) > 0;
    r[i++] = map(sys, 1);
    r[i++] = close(sys, other);
    r[i++] = map(sys, 8 * page) > 0;
  }
};

TEST_P(memory_bounds, of_files_of_memory) {
  own_folder f;
  options o = options_for(f);
  o.mapped_bytes = 16 * page;
  server s(where(), o);
  simt::buffer<char> shared(where(), simt::space::pinned, 18 * page);
  s.share(std::as_writable_bytes(std::span(shared.data(), shared.size())));
  auto r = make<std::int64_t>(23);
  run(1, 32, fill_to_the_bound{s.ref(), shared.data(), shared.data() + page, r.data()});
  constexpr auto all = static_cast<std::int64_t>(8 * page), end = all;
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{
                             1,   all,     page,    -ENOSPC, -ENOSPC, -ENOSPC, end, -ENOSPC,
                             all, -ENFILE, -ENOMEM, 0,       1,       -ENOMEM, 0,   -ENOMEM,
                             0,   -ENOMEM, 0,       1,       -ENOMEM, 0,       1}));
}

// Many at a time map, unmap, fill and close; some are refused.
struct churn {
  server_ref sys;
  const char* name;
  std::uint32_t* wrong;
  GROSR_DEVICE void operator()() const {
    char text[8] = "memory";
    const auto expect = [&](bool holds) {
      if (!holds) simt::atomic_ref<std::uint32_t>(*wrong).fetch_add(1, simt::relaxed);
    };
    for (unsigned i = 0; i < 4; ++i) {
      const std::size_t pages = 1 + (simt::thread_id() + i) % 5;
      const long mapped = map(sys, pages * page);
      expect(mapped > 0 || mapped == -ENOMEM);
      const long file = syscall(sys, SYS_memfd_create, name, 0);
      expect(file >= 0 || file == -ENFILE);
      if (file >= 0) {
        const int fd = static_cast<int>(file);
        const long n = pwrite(sys, fd, text, 6, static_cast<std::int64_t>(pages * page));
        expect(n == 6 || n == -ENOSPC);
        const long seen = map(sys, page, file);
        expect(seen > 0 || seen == -ENOMEM);
        const long cut = ftruncate(sys, fd, 1);
        expect(cut == 0 || (cut == -ENOSPC && n < 0));
        expect(close(sys, fd) == 0);
        if (seen > 0) expect(munmap(sys, at(seen), page) == 0);
      }
      if (mapped > 0) expect(munmap(sys, at(mapped), pages * page) == 0);
    }
  }
};

struct map_all {
  server_ref sys;
  std::size_t bytes;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    const long all = map(sys, bytes);
    r[0] = all > 0;
    r[1] = map(sys, 1);
    r[2] = munmap(sys, at(all), bytes);
    r[3] = map(sys, bytes + 1);
  }
};

TEST_P(memory_bounds, are_exact_after_races) {
  own_folder f;
  options o = options_for(f);
  o.mapped_bytes = 64 * page;
  o.mappings = 40;
  server s(where(), o);
  simt::buffer<char> name(where(), simt::space::pinned, 8);
  s.share(std::as_writable_bytes(std::span(name.data(), name.size())));
  auto wrong = make<std::uint32_t>(1);
  run(2, 64, churn{s.ref(), name.data(), wrong.data()});
  EXPECT_EQ(contents(wrong)[0], 0u);
  auto r = make<std::int64_t>(4);
  run(1, 32, map_all{s.ref(), 64 * page, r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{1, -ENOMEM, 0, -ENOMEM}));
}

}  // namespace
}  // namespace grosr::sys
