#include "sys/memory_files.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/service.hpp"

namespace grosr::sys {
namespace {

std::uint64_t whole_pages(std::uint64_t bytes) {
  return bytes > ~std::uint64_t{0} - page_bytes
             ? bytes
             : (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

bool memory_file::grow_to(std::uint64_t end) {
  const std::uint64_t wanted = whole_pages(end);
  if (wanted <= charged_) return true;
  if (!bytes_->take(wanted - charged_)) return false;
  charged_ = wanted;
  return true;
}

void memory_file::settle(int fd) {
  struct stat s {};
  if (::fstat(fd, &s) != 0) return;
  // Huge pages are taken whole.
  const auto unit = std::max(page_bytes, static_cast<std::uint64_t>(s.st_blksize));
  const auto length = (static_cast<std::uint64_t>(s.st_size) + unit - 1) / unit * unit;
  const std::uint64_t now = std::max(length, kept_);
  if (now < charged_)
    bytes_->give(charged_ - now);
  else
    bytes_->force(now - charged_);
  charged_ = now;
}

void memory_file::keep_to(std::uint64_t end) { kept_ = std::max(kept_, whole_pages(end)); }

void memory_files::add(int fd, std::shared_ptr<memory_file> file) {
  const std::unique_lock lock(lock_);
  files_[fd] = std::move(file);
  count_.store(files_.size(), std::memory_order_release);
}

void memory_files::share(int from, int to) {
  const std::unique_lock lock(lock_);
  const auto of = files_.find(from);
  if (of != files_.end())
    files_[to] = of->second;
  else
    files_.erase(to);
  count_.store(files_.size(), std::memory_order_release);
}

void memory_files::drop(int fd) {
  const std::unique_lock lock(lock_);
  files_.erase(fd);
  count_.store(files_.size(), std::memory_order_release);
}

std::shared_ptr<memory_file> memory_files::find(int fd) const {
  const std::shared_lock lock(lock_);
  const auto at = files_.find(fd);
  return at != files_.end() ? at->second : nullptr;
}

/// The file of memory whose length or position a call may change, by descriptor `fd`; null: none.
std::shared_ptr<memory_file> service::file_to_change(const call_record& c, int& fd) {
  if (!memory_files_.any()) return nullptr;
  switch (c.number) {
    case SYS_read:
    case SYS_lseek:
    case SYS_write:
    case SYS_pwrite64:
    case SYS_ftruncate:
    case SYS_fallocate:
    case SYS_sendfile:
      fd = static_cast<int>(c.argument[0]);
      break;
    case SYS_splice:
    case SYS_copy_file_range:
      fd = static_cast<int>(c.argument[2]);
      break;
    default:
      return nullptr;
  }
  return memory_files_.find(fd);
}

/// A call that may make a file of memory longer: not beyond what kernels may have. -ENOSPC, as
/// where a file system is full.
long service::call_on_memory(const linux_call& info, const call_record& c, memory_file& file,
                             int fd) {
  const std::uint64_t* const a = c.argument;
  const std::lock_guard lock(file.lock);
  const bool splices = c.number == SYS_splice || c.number == SYS_copy_file_range;
  std::uint64_t bytes = 0, offset = 0;
  call_record made = c;
  switch (c.number) {
    case SYS_read:
    case SYS_lseek:
      return call_plain(info, c);
    case SYS_write:
      bytes = a[2];
      break;
    case SYS_pwrite64:
      bytes = a[2], offset = a[3];
      break;
    case SYS_ftruncate:
      bytes = a[1];
      break;
    case SYS_fallocate:
      bytes = (a[1] & FALLOC_FL_PUNCH_HOLE) != 0 ? 0 : a[3], offset = a[2];
      break;
    case SYS_sendfile:
      bytes = a[3];
      break;
    default:
      bytes = a[4];
      // A copy of the offset, which no kernel can change any more.
      if (a[3] != 0 && !copy_in(&offset, a[3], sizeof offset)) return -EFAULT;
      if (a[3] != 0) made.argument[3] = reinterpret_cast<std::uint64_t>(&offset);
  }
  const bool by_position =
      c.number == SYS_write || c.number == SYS_sendfile || (splices && a[3] == 0);
  if (by_position) {
    const off_t at = ::lseek(fd, 0, SEEK_CUR);
    if (at < 0) return -errno;
    offset = static_cast<std::uint64_t>(at);
  }
  // Linux refuses what is negative, and moves no more than that.
  constexpr std::uint64_t most = 0x7fff'ffff'ffff'ffff, most_moved = 0x7fff'f000;
  const bool moves = c.number != SYS_ftruncate && c.number != SYS_fallocate;
  if (moves) bytes = std::min(bytes, most_moved);
  const bool sane = bytes <= most && offset <= most - bytes;
  if (sane && bytes != 0 && !file.grow_to(offset + bytes)) return -ENOSPC;
  const long result = call_plain(info, made);
  if (result >= 0 && c.number == SYS_fallocate && bytes != 0) file.keep_to(offset + bytes);
  if (result == 0 && c.number == SYS_ftruncate) file.drop_kept();
  file.settle(fd);
  if (result >= 0 && splices && a[3] != 0 && !copy_out(a[3], &offset, sizeof offset))
    return -EFAULT;
  return result;
}

}  // namespace grosr::sys
