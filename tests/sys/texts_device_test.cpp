// A text that a kernel passes lies in memory that kernels may use, up to its end.
#include <fcntl.h>
#include <sys/mman.h>

#include <cstring>

#include "sys/calls.hpp"

namespace grosr::sys {
namespace {

GROSR_DEVICE_SUITE(texts);

/// Two pages that the program has: the first one is for kernels, the second is its own.
class two_pages {
 public:
  explicit two_pages(device d) : bytes_(d, simt::space::pinned, 3 * 4096) {
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
    at_ = bytes_.data() + (4096 - begin % 4096) % 4096;
    std::memset(at_, 'x', 4096);
    std::strcpy(at_ + 4096, "of the program");
  }
  char* at(unsigned i) const { return at_ + i; }
  std::span<std::byte> first() const { return std::as_writable_bytes(std::span(at_, 4096)); }

 private:
  simt::buffer<char> bytes_;
  char* at_;
};

struct pass_texts {
  server_ref sys;
  const char* text;
  const char* other;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    const long file = open(sys, "in", O_RDWR);
    r[i++] = syscall(sys, SYS_symlinkat, text, AT_FDCWD, other);
    r[i++] = syscall(sys, SYS_unlinkat, AT_FDCWD, other, 0);
    r[i++] = syscall(sys, SYS_mkdirat, AT_FDCWD, text, 0700);
    r[i++] = syscall(sys, SYS_memfd_create, text, 0) >= 0 ? 1 : 0;
    r[i++] = syscall(sys, SYS_fgetxattr, file, text, nullptr, 0L);
    r[i++] = syscall(sys, SYS_fremovexattr, file, text);
  }
};

TEST_P(texts, end_in_shared_memory) {
  own_folder f;
  f.write("in", "");
  const two_pages pages(where());
  std::strcpy(pages.at(100), "other");
  server s(where(), options_for(f));
  s.share(pages.first());
  auto r = make<std::int64_t>(6);
  // "xxx" and then a page that is the program's.
  run(1, 32, pass_texts{s.ref(), pages.at(4093), pages.at(100), r.data()});
  EXPECT_EQ(contents(r),
            (std::vector<std::int64_t>{-EFAULT, -ENOENT, -EFAULT, 0, -EFAULT, -EFAULT}));
  // The same bytes, which end.
  std::strcpy(pages.at(4085), "user.grosr");
  ASSERT_EQ(pages.at(4095)[0], 0);
  run(1, 32, pass_texts{s.ref(), pages.at(4085), pages.at(100), r.data()});
  const auto got = contents(r);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(got[i], 0) << i;
  EXPECT_EQ(got[3], 1);
  for (int i = 4; i < 6; ++i) EXPECT_TRUE(got[i] == -ENODATA || got[i] == -EOPNOTSUPP) << got[i];
  EXPECT_EQ(std::strcmp(pages.at(4096), "of the program"), 0);
}

/// Just before a kernel maps a page there: else something of the program's comes first.
struct free_page {
  static constexpr std::uint16_t number = 0;
  long operator()(std::uint64_t at) const { return ::munmap(reinterpret_cast<void*>(at), 4096); }
};

struct pass_mapped {
  server_ref sys;
  void* at;
  const char* other;
  std::int64_t* r;
  GROSR_DEVICE void operator()() const {
    if (simt::thread_id() != 0) return;
    unsigned i = 0;
    const long file = open(sys, "in", O_RDWR);
    call<free_page>(sys, reinterpret_cast<std::uint64_t>(at));
    const long got =
        mmap(sys, at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    r[i++] = got == reinterpret_cast<long>(at);
    r[i++] = syscall(sys, SYS_pread64, file, got, 4096, 0);
    r[i++] = syscall(sys, SYS_symlinkat, got + 4000, AT_FDCWD, other);
    r[i++] = syscall(sys, SYS_symlinkat, got + 1000, AT_FDCWD, other);
    r[i++] = munmap(sys, reinterpret_cast<void*>(got), 4096);
    r[i++] = syscall(sys, SYS_symlinkat, got + 1000, AT_FDCWD, other);
  }
};

TEST_P(texts, end_in_mapped_memory) {
  own_folder f;
  std::string content(4096, 'x');
  content[1010] = 0;
  f.write("in", content);
  simt::buffer<char> other(where(), simt::space::pinned, 8);
  std::strcpy(other.data(), "other");
  char* const pages = static_cast<char*>(
      ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::strcpy(pages + 4096, "of the program");
  server s(where(), options_for(f));
  s.share(std::as_writable_bytes(std::span(other.data(), 8)));
  s.install(free_page{});
  auto r = make<std::int64_t>(6);
  run(1, 32, pass_mapped{s.ref(), pages, other.data(), r.data()});
  EXPECT_EQ(contents(r), (std::vector<std::int64_t>{1, 4096, -EFAULT, 0, 0, -EFAULT}));
  ::munmap(pages + 4096, 4096);
}

}  // namespace
}  // namespace grosr::sys
