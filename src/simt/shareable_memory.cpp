#include "grosr/simt/shareable_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "grosr/simt/process.hpp"
#include "simt/backend.hpp"

namespace grosr::simt {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr int seal_against_others = 0x10;  // F_SEAL_FUTURE_WRITE, which not all headers have

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

/// On the host: a file of memory that cannot change its size.
int make_file(std::size_t bytes) {
  const int file = memfd_create("grosr-shareable", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) throw_errno("memfd_create");
  // With all its pages, so that no access finds that there is no memory left.
  int failed = 0;
  do {
    failed = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  } while (failed == EINTR);
  if (failed == 0) return file;
  ::close(file);
  throw std::system_error(failed, std::generic_category(), "posix_fallocate");
}

std::byte* map_file(int file, std::size_t bytes, bool writes) {
  void* const at =
      mmap(nullptr, bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) throw_errno("mmap");
  return static_cast<std::byte*>(at);
}

bool is_sealed_file(int file, std::size_t bytes) {
  struct ::stat is = {};
  return file >= 0 && fstat(file, &is) == 0 && static_cast<std::size_t>(is.st_size) == bytes &&
         (fcntl(file, F_GET_SEALS) & seals) == seals;
}

}  // namespace

// ---- devices ----

std::string device_identity::text() const {
  if (kind == backend::host) return fmt::format("host:{}", uuid[0]);
  std::string text = "GPU";
  for (std::size_t i = 0; i < uuid.size(); ++i)
    text += fmt::format("{}{:02x}", i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-" : "",
                        unsigned{uuid[i]});
  return text;
}

device_identity identity_of(const device& d) {
  device_identity i{d.kind(), {}};
  if (d.is_cuda())
    i.uuid = cuda_backend::uuid(d.index());
  else
    i.uuid[0] = static_cast<std::uint8_t>(d.index());
  return i;
}

std::optional<device> device_with(const device_identity& i) {
  for (const device& d : device::list())
    if (d.kind() == i.kind && identity_of(d) == i) return d;
  return std::nullopt;
}

// ---- memory ----

shareable_memory::shareable_memory(const device& d, std::size_t bytes, int file)
    : device_(d), bytes_(bytes), file_(file), made_in_(this_process()) {}

shareable_memory shareable_memory::make(const device& d, std::size_t bytes, bool others_write) {
  if (d.is_cuda()) {
    const cuda_backend::shared_allocation made = cuda_backend::make_shareable(d, bytes);
    shareable_memory m(d, bytes, made.file);
    m.data_ = static_cast<std::byte*>(made.data);
    return m;
  }
  shareable_memory m(d, bytes, make_file(bytes));
  m.data_ = map_file(m.file_, bytes, true);
  // Where others only read, nobody else writes, or punches holes. Linux before 5.1 has no such
  // seal.
  if (!others_write && fcntl(m.file_, F_ADD_SEALS, seal_against_others) != 0 && errno != EINVAL)
    throw_errno("F_ADD_SEALS");
  if (fcntl(m.file_, F_ADD_SEALS, seals | F_SEAL_SEAL) != 0) throw_errno("F_ADD_SEALS");
  return m;
}

shareable_memory shareable_memory::map(const device& d, int file, std::size_t bytes, bool writes) {
  shareable_memory m(d, bytes, file);
  if (d.is_cuda()) {
    m.data_ =
        static_cast<std::byte*>(file < 0 ? nullptr : cuda_backend::map_shareable(d, file, bytes));
  } else if (is_sealed_file(file, bytes)) {
    m.data_ = map_file(file, bytes, writes);
  }
  if (m.data_ == nullptr)
    throw error(errc::bad_input,
                fmt::format("map memory of {}: the other process sent no file of memory of {} that "
                            "keeps its size; look what it is",
                            d.name(), in_units(bytes)));
  return m;
}

shareable_memory& shareable_memory::operator=(shareable_memory&& o) noexcept {
  std::swap(device_, o.device_);
  std::swap(data_, o.data_);
  std::swap(bytes_, o.bytes_);
  std::swap(file_, o.file_);
  std::swap(made_in_, o.made_in_);
  return *this;
}

shareable_memory::~shareable_memory() {
  if (data_ != nullptr) {
    if (!device_.is_cuda())
      munmap(data_, bytes_);
    else if (this_process() == made_in_)  // a forked child has nothing of CUDA's
      cuda_backend::unmap_shareable(device_, data_, bytes_);
  }
  if (file_ >= 0) ::close(file_);
}

}  // namespace grosr::simt
