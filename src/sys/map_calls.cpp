// Calls that map memory of the host.
#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/linux_result.hpp"
#include "sys/service.hpp"

namespace grosr::sys {
namespace {

/// Bytes of a page of the file's; 0: it is not known.
std::uint64_t page_of(int file) {
  struct statfs s {};
  if (::fstatfs(file, &s) != 0) return 0;
  return s.f_type == HUGETLBFS_MAGIC ? static_cast<std::uint64_t>(s.f_bsize) : 4096;
}

/// Those of a huge page where nobody says of which size; 0: it is not known.
std::uint64_t usual_huge_page() {
  static const std::uint64_t bytes = [] {
    const int some = ::memfd_create("grosr", MFD_CLOEXEC | MFD_HUGETLB);
    if (some < 0) return std::uint64_t{0};
    const std::uint64_t found = page_of(some);
    ::close(some);
    return found;
  }();
  return bytes;
}

std::uint64_t page_of_map(const std::uint64_t* a) {
  constexpr unsigned shift = 26, mask = 63;  // MAP_HUGE_SHIFT, MAP_HUGE_MASK
  if ((a[3] & MAP_ANONYMOUS) == 0) return page_of(static_cast<int>(a[4]));
  if ((a[3] & MAP_HUGETLB) == 0) return 4096;
  const std::uint64_t log = a[3] >> shift & mask;
  return log != 0 ? std::uint64_t{1} << log : usual_huge_page();
}

}  // namespace

/// Linux maps whole pages, huge ones too: all of what it maps is kernels'.
long service::call_mmap(const call_record& c) {
  const std::uint64_t* a = c.argument;
  const std::uint64_t page = page_of_map(a);
  if (page == 0) return (a[3] & MAP_ANONYMOUS) == 0 ? -EBADF : -ENOMEM;
  if (!options_.policy.raw && !mapped_.may_map()) return -ENOMEM;
  const std::uint64_t bytes =
      a[1] > ~std::uint64_t{0} - page ? ~std::uint64_t{0} : (a[1] + page - 1) / page * page;
  if (bytes == 0) return -EINVAL;
  auto file = (a[3] & MAP_ANONYMOUS) == 0 ? memory_files_.find(static_cast<int>(a[4])) : nullptr;
  if (!mapped_.charge(bytes)) return -ENOMEM;
  const long result = linux_result(SYS_mmap, a);
  if (result >= 0)
    mapped_.add(static_cast<std::uint64_t>(result), bytes, std::move(file));
  else
    mapped_.discharge(bytes);
  return result;
}

}  // namespace grosr::sys
