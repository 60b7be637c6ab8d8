#include "file_format.hpp"

#include <openssl/rand.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

namespace grosr::cryptfs {
namespace {

constexpr char magic[8] = {'c', 'r', 'y', 'p', 't', 'f', 's', '1'};
constexpr std::uint64_t largest_file = std::uint64_t{1} << 62;

/// The first bytes of a file; zeros follow, up to header_bytes. Numbers are little-endian.
struct header {
  char magic[8];
  std::uint64_t number, size;
};

[[noreturn]] void fail(int why) { throw std::system_error(why, std::generic_category()); }

/// How many bytes there were: fewer at the end of the file.
std::size_t read_all(int fd, void* to, std::size_t bytes, std::uint64_t at) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t n =
        pread(fd, static_cast<std::byte*>(to) + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void write_all(int fd, const void* from, std::size_t bytes, std::uint64_t at) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = pwrite(fd, static_cast<const std::byte*>(from) + done, bytes - done,
                             static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(errno);
    done += static_cast<std::size_t>(n);
  }
}

void cut(int fd, std::uint64_t bytes) {
  while (ftruncate(fd, static_cast<off_t>(bytes)) != 0)
    if (errno != EINTR) fail(errno);
}

/// Nothing was written there: no sector is encrypted to zeros.
bool is_hole(const std::byte* p, std::size_t bytes) {
  return p[0] == std::byte{0} && std::memcmp(p, p + 1, bytes - 1) == 0;
}

}  // namespace

void file_format::know(file_state& f, int fd) const {
  if (f.known) return;
  header h;
  const std::size_t n = read_all(fd, &h, sizeof h, 0);
  if (n != 0) {
    if (n != sizeof h || std::memcmp(h.magic, magic, sizeof magic) != 0 || h.number == 0 ||
        h.size > largest_file)
      throw damaged_file();
    f.number = h.number;
    f.size = h.size;
  }
  f.known = true;
}

void file_format::know_shared(file_state& f, int fd) const {
  {
    std::shared_lock guard(f.lock);
    if (f.known) return;
  }
  std::unique_lock guard(f.lock);
  know(f, fd);
}

std::uint64_t file_format::size(file_state& f, int fd) const {
  know_shared(f, fd);
  std::shared_lock guard(f.lock);
  return f.size;
}

void file_format::make_header(file_state& f, int fd) const {
  if (f.number != 0) return;
  alignas(header) char page[header_bytes] = {};
  header h{};
  std::memcpy(h.magic, magic, sizeof magic);
  do
    if (RAND_bytes(reinterpret_cast<unsigned char*>(&h.number), sizeof h.number) != 1) fail(EIO);
  while (h.number == 0);
  std::memcpy(page, &h, sizeof h);
  write_all(fd, page, sizeof page, 0);
  f.number = h.number;
  f.trimmed = true;
}

void file_format::set_size(file_state& f, int fd, std::uint64_t size) const {
  write_all(fd, &size, sizeof size, offsetof(header, size));
  f.size = size;
}

void file_format::read_sectors(const file_state& f, int fd, std::uint64_t first, std::size_t count,
                               std::byte* through, std::byte* plain) const {
  const std::size_t n = read_all(fd, through, count * sector_, place_of(first));
  // The size is written last: what it counts was lost behind this file system's back.
  if (n < count * sector_ && place_of(first) + n < place_of(sectors_of(f.size))) fail(EIO);
  std::memset(through + n, 0, count * sector_ - n);
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i;
    while (end < count && !is_hole(through + end * sector_, sector_)) ++end;
    if (end > i)
      by_.run(way::decrypt, {f.number, first + i, end - i, sector_}, through + i * sector_,
              plain + i * sector_);
    for (i = end; i < count && is_hole(through + i * sector_, sector_); ++i)
      std::memset(plain + i * sector_, 0, sector_);
  }
  // What lies behind the end is nobody's: a write that was cut off, or the file was longer.
  const std::uint64_t begin = first * sector_, end = begin + count * sector_;
  if (f.size < end) {
    const std::uint64_t from = std::max(f.size, begin) - begin;
    std::memset(plain + from, 0, count * sector_ - from);
  }
}

void file_format::write_sectors(const file_state& f, int fd, std::uint64_t first, std::size_t count,
                                const std::byte* plain, std::byte* through) const {
  by_.run(way::encrypt, {f.number, first, count, sector_}, plain, through);
  write_all(fd, through, count * sector_, place_of(first));
}

std::span<const std::byte> file_format::read(file_state& f, int fd, std::uint64_t offset,
                                             std::size_t bytes, const workspace& w) const {
  know_shared(f, fd);
  std::shared_lock guard(f.lock);
  if (offset >= f.size) return {};
  bytes = static_cast<std::size_t>(std::min<std::uint64_t>({bytes, most_request, f.size - offset}));
  if (bytes == 0) return {};
  const std::uint64_t first = offset / sector_, last = (offset + bytes - 1) / sector_;
  read_sectors(f, fd, first, static_cast<std::size_t>(last - first + 1), w.encrypted(), w.plain());
  return {w.plain() + (offset - first * sector_), bytes};
}

/// Before the file grows: what lies behind the old end is made zeros, but for what is left of the
/// last sector where that is to be written next.
void file_format::before_growth(file_state& f, int fd, bool last_is_written,
                                const workspace& w) const {
  if (!f.trimmed) {
    struct stat s;
    if (fstat(fd, &s) != 0) fail(errno);
    const std::uint64_t end = place_of(sectors_of(f.size));
    if (static_cast<std::uint64_t>(s.st_size) > end) cut(fd, end);
    f.trimmed = true;
  }
  if (f.size % sector_ == 0 || last_is_written) return;
  const std::uint64_t last = f.size / sector_;
  read_sectors(f, fd, last, 1, w.encrypted(), w.plain());
  write_sectors(f, fd, last, 1, w.plain(), w.encrypted());
}

void file_format::write(file_state& f, int fd, std::uint64_t offset,
                        std::span<const std::byte> data, bool pinned, const workspace& w) const {
  if (data.empty()) return;
  if (data.size() > most_request) fail(EINVAL);
  if (offset > largest_file - data.size()) fail(EFBIG);
  std::unique_lock guard(f.lock);
  know(f, fd);
  make_header(f, fd);
  const std::uint64_t end = offset + data.size();
  if (end > f.size) before_growth(f, fd, offset / sector_ <= f.size / sector_, w);
  const std::uint64_t first = offset / sector_, last = (end - 1) / sector_;
  const auto count = static_cast<std::size_t>(last - first + 1);
  const std::size_t head = offset % sector_, tail = end % sector_;
  const std::byte* plain = data.data();
  if (head != 0 || tail != 0 || !pinned || reinterpret_cast<std::uintptr_t>(plain) % 16 != 0) {
    if (head != 0) read_sectors(f, fd, first, 1, w.encrypted(), w.plain());
    if (tail != 0 && (head == 0 || last != first))
      read_sectors(f, fd, last, 1, w.encrypted(), w.plain() + (count - 1) * sector_);
    std::memcpy(w.plain() + head, data.data(), data.size());
    plain = w.plain();
  }
  if (end > f.size) f.trimmed = false;  // until the size says so
  write_sectors(f, fd, first, count, plain, w.encrypted());
  if (end > f.size) {
    set_size(f, fd, end);
    f.trimmed = true;
  }
}

void file_format::truncate(file_state& f, int fd, std::uint64_t size, const workspace& w) const {
  if (size > largest_file) fail(EFBIG);
  std::unique_lock guard(f.lock);
  know(f, fd);
  if (size == f.size) {  // its time changes
    struct stat s;
    if (fstat(fd, &s) != 0) fail(errno);
    cut(fd, static_cast<std::uint64_t>(s.st_size));
    return;
  }
  make_header(f, fd);
  if (size < f.size) {
    set_size(f, fd, size);
    f.trimmed = false;
    cut(fd, place_of(sectors_of(size)));
    f.trimmed = true;
    return;
  }
  before_growth(f, fd, false, w);
  f.trimmed = false;
  cut(fd, place_of(sectors_of(size)));  // a hole
  set_size(f, fd, size);
  f.trimmed = true;
}

}  // namespace grosr::cryptfs
