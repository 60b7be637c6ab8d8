// The grammar of a fuzzer: calls that are right, nearly right, and wrong on purpose. Device code.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "fuzz/fuzz.hpp"
#include "grosr/simt/wait.hpp"

namespace grosr::tool::fuzz {

/// splitmix64: the same draws for the same seed, everywhere.
struct dice {
  std::uint64_t s;
  GROSR_DEVICE static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
  }
  GROSR_DEVICE static dice of(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
    return {mixed(mixed(mixed(seed) + a) + b)};
  }
  GROSR_DEVICE std::uint64_t next() { return mixed(s += 0x9e3779b97f4a7c15ull); }
  GROSR_DEVICE std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((next() >> 32) * n >> 32);
  }
  GROSR_DEVICE bool chance(std::uint32_t one_in) { return below(one_in) == 0; }
};

/// A lane's own memory: what calls point to. Calls that were dropped may still use it.
struct lane_memory {
  timespec span, now;
  pollfd polled[8];
  sockaddr_in name;
  unsigned char more_of_name[112];
  socklen_t length, option_length;
  unsigned char option[1024];
  struct stat status;
  rusage usage;
  iovec vectors[8];
  std::uint64_t mapped, mapped_bytes;
  std::uint32_t stale;
  unsigned char bytes[2048];
};

inline constexpr std::uint32_t held_a_block = 48, warp_room = 80 * 1024, none = 0xffffffffu;
inline constexpr std::uint32_t shared_room = 5 << 20, listened = 8;
/// Where in shared memory lanes forge the words of prints, behind what most calls are told of.
inline constexpr std::uint32_t forged_at = 2 << 20, forged_words = 160;
inline constexpr std::int64_t is_forged = 6;  ///< a print's `offset`

/// One call as it was drawn.
struct drawn {
  op what;
  fate how;
  bool outside;  ///< names what no call may reach
  bool marked;   ///< a print that is counted
  int fd;
  int flags;
  unsigned mode;
  std::int64_t offset;
  std::uint64_t bytes;
  long number;
  std::uint64_t a[6];
  const char* path;
  const char* other;
  unsigned char* buffer;
  lane_memory* memory;

  GROSR_DEVICE const iovec* vectors() const { return a[0] != 0 ? memory->vectors : nullptr; }
};

/// What kernels are told; a kernel's parameter.
struct world {
  std::uint64_t seed, canary;
  std::uint32_t phases;
  bool hostile, in_place, denied;
  lane_memory* lanes;
  std::uint32_t* held;  ///< descriptors, held_a_block of each block
  drawn* agreed;        ///< a place a warp, and then one a block
  unsigned char* warp_bytes;
  unsigned char* checked_bytes;
  unsigned char* shared;     ///< pinned, and the server knows it
  const char* shared_paths;  ///< before it, where no call writes by mistake
  const char* paths;         ///< the same paths, in device memory
  std::uint32_t inside, strange, outside;
  const raw_call* raw;
  std::uint32_t raws;
  const int* files;
  const int* strangers;
  std::uint32_t strangers_count;
  std::uint64_t foreign[8];
  std::uint32_t foreign_count;
  std::uint32_t tcp_name_port, udp_name_port;  ///< in the network's order
  std::uint32_t* ports;                        ///< those that kernels listen at, the same order
  lane_steps* steps;                           ///< pinned
  const std::uint32_t* quit;                   ///< pinned
  outcome* out;
  sys::grid_point* points;
};

/// Draws calls for one caller.
class drawer {
 public:
  GROSR_DEVICE drawer(const world& w, dice& d, const sys::view& v, lane_memory* m, bool big)
      : w_(w), d_(d), v_(v), m_(m) {
    const std::uint32_t warp = simt::block_id() * (simt::block_size() / 32) + simt::warp_id();
    buffer_ = big ? w.warp_bytes + std::size_t{warp} * warp_room : m->bytes;
    room_ = big ? warp_room : sizeof m->bytes;
  }

  GROSR_DEVICE GROSR_NOINLINE drawn call() {
    drawn c{};
    c.memory = m_;
    c.how = static_cast<fate>(d_.below(3));
    const std::uint32_t kind = d_.below(16);
    c.what = kind < 5 ? op::raw : static_cast<op>(d_.below(static_cast<std::uint32_t>(op::count)));
    c.fd = descriptor();
    c.buffer = buffer_;
    c.bytes = length(room_ - 64);
    if (d_.chance(4)) c.buffer += d_.below(32);
    if (d_.chance(64)) c.buffer = nullptr;
    c.offset = offset();
    c.path = path(c.outside);
    bool other_outside = false;
    c.other = path(other_outside);
    c.flags = flags();
    c.mode = d_.chance(2) ? 0600u : static_cast<unsigned>(d_.next());
    fill(c, other_outside);
    return c;
  }

 private:
  GROSR_DEVICE GROSR_NOINLINE int descriptor() {
    const std::uint32_t kind = d_.below(20);
    if (kind == 0) {
      const int usual[] = {-1, AT_FDCWD, 0, 1, 2, 0x7fffffff, 1 << 20, -4095};
      return usual[d_.below(8)];
    }
    if (kind == 1 && w_.strangers_count != 0) return w_.strangers[d_.below(w_.strangers_count)];
    if (kind == 2) return static_cast<int>(m_->stale);
    if (kind == 3 && w_.hostile) return static_cast<int>(d_.below(256));
    const std::uint32_t block = kind == 4 ? d_.below(simt::grid_size()) : simt::block_id();
    return static_cast<int>(
        simt::atomic_ref<std::uint32_t>(w_.held[block * held_a_block + d_.below(held_a_block)])
            .load(simt::relaxed));
  }

  GROSR_DEVICE std::uint64_t length(std::uint64_t most) {
    const std::uint32_t usual[] = {0,   1,   8,   15,   16,   17,    64,    255,
                                   256, 257, 512, 4096, 4097, 65535, 65536, 65537};
    const std::uint64_t n = d_.chance(4) ? d_.next() % (most + 1) : usual[d_.below(16)];
    return n < most ? n : most;
  }

  GROSR_DEVICE std::int64_t offset() {
    if (!d_.chance(4)) return d_.below(1 << 18);
    constexpr std::int64_t last = INT64_MAX;
    const std::int64_t usual[] = {0, -1, last, last - 65536, INT64_MIN, 1ll << 31, 1ll << 62, 4095};
    return usual[d_.below(8)];
  }

  GROSR_DEVICE const char* path(bool& outside) {
    const std::uint32_t kind = d_.below(16);
    std::uint32_t i = kind < 9    ? d_.below(w_.inside)
                      : kind < 12 ? w_.inside + d_.below(w_.strange)
                                  : w_.inside + w_.strange + d_.below(w_.outside);
    outside = kind >= 12;
    if (d_.chance(200)) return nullptr;
    const char* all = d_.chance(2) ? w_.paths : w_.shared_paths;
    return all + std::size_t{i} * path_room;
  }
  GROSR_DEVICE const char* shared_path() {
    bool ignored = false;
    const char* p = path(ignored);
    const auto from = reinterpret_cast<std::uintptr_t>(w_.paths);
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    const std::uintptr_t all = std::uintptr_t{w_.inside + w_.strange + w_.outside} * path_room;
    return at - from < all ? w_.shared_paths + (at - from) : p;
  }

  GROSR_DEVICE int flags() {
    if (d_.chance(8)) return static_cast<int>(d_.next());
    const int usual[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDWR};
    const int more[] = {0,          O_CREAT,     O_CREAT | O_EXCL, O_TRUNC,    O_APPEND, O_NOFOLLOW,
                        O_NONBLOCK, O_DIRECTORY, O_PATH,           O_TMPFILE,  O_CREAT,  O_CREAT,
                        0,          O_NOATIME,   O_CREAT,          O_DIRECTORY};
    return usual[d_.below(4)] | more[d_.below(16)];
  }

  GROSR_DEVICE std::uint64_t random_pointer() {
    // No address of a program: bits that are neither all clear nor all set above its 47.
    return d_.next() | 1ull << 62;
  }

  /// Where bytes may lie that a raw call is told of; `w_.in_place`: only where they may.
  GROSR_DEVICE GROSR_NOINLINE std::uint64_t pointer() {
    const auto shared = reinterpret_cast<std::uint64_t>(w_.shared) + d_.below(4096);
    switch (d_.below(12)) {
      case 0:
        return 0;
      case 1:
        return random_pointer();
      case 2:
        return w_.in_place ? shared : reinterpret_cast<std::uint64_t>(buffer_);
      case 3:
        if (w_.in_place || w_.foreign_count == 0) return shared;
        return w_.foreign[d_.below(w_.foreign_count)] + 8 * d_.below(64);
      case 4:
        return m_->mapped != 0 && !w_.in_place ? m_->mapped + d_.below(4096) : shared;
      case 5:
      case 6: {
        if (w_.in_place) return shared;
        // Into the arena, and around its end.
        const auto first = reinterpret_cast<std::uint64_t>(v_.arena[sys::chunk_sizes - 1]);
        const auto end = reinterpret_cast<std::uint64_t>(v_.arena[0]) +
                         std::uint64_t{v_.chunks[0].words()} * 32 * sys::chunk_stride(0);
        if (d_.chance(4)) return end - 64 + d_.below(128);
        if (d_.chance(4)) return first - 64 + d_.below(64);
        return w_.hostile ? first + d_.next() % (end - first) : shared;
      }
      case 7:
        return w_.in_place ? shared : d_.below(65536);
      default:
        return shared;
    }
  }

  GROSR_DEVICE std::uint64_t small() {
    const std::uint32_t kind = d_.below(4);
    return kind == 0   ? 0
           : kind == 1 ? d_.below(16)
           : kind == 2 ? 1ull << d_.below(w_.in_place ? 16 : 31)
                       : d_.below(65538);
  }

  /// Memory that calls are to change: mostly somebody else's.
  GROSR_DEVICE std::uint64_t address() {
    const std::uint32_t kind = d_.below(8);
    if (kind < 4) return m_->mapped + 4096 * d_.below(3);
    if (kind < 7 && w_.foreign_count != 0) return w_.foreign[d_.below(w_.foreign_count)];
    return kind == 7 ? 0 : random_pointer() & ~4095ull;
  }

  GROSR_DEVICE GROSR_NOINLINE std::uint64_t anything() {
    switch (d_.below(8)) {
      case 0:
      case 1:
        return pointer();
      case 2:
        return static_cast<std::uint64_t>(descriptor());
      case 3:
        // No pid is so large, and no process group.
        return w_.in_place ? small() : 0x7fffff00 + d_.below(256);
      case 4:
        return w_.in_place ? small() : ~std::uint64_t{0} - d_.below(2) * 0x7fffffff;
      default:
        return small();
    }
  }

  GROSR_DEVICE GROSR_NOINLINE std::uint64_t argument(char kind) {
    switch (kind) {
      case 'f':
        return static_cast<std::uint64_t>(std::int64_t{descriptor()});
      case 'd':
        return static_cast<std::uint64_t>(std::int64_t{d_.chance(3) ? descriptor() : AT_FDCWD});
      case 'p':
        return d_.chance(8) && w_.hostile ? pointer()
                                          : reinterpret_cast<std::uint64_t>(shared_path());
      case 'b':
        return pointer();
      case 'n':
        return d_.chance(16) && !w_.in_place ? d_.next() >> d_.below(64) : length(65537);
      case 'o':
        return static_cast<std::uint64_t>(offset());
      case 'v':
        return d_.chance(8) ? d_.next() & 0xffffffff : small();
      case '0':
        return 0;
      case 'a':
        return address();
      case 'm':
        return d_.chance(8) ? d_.next() | 1ull << 50 : 4096 * d_.below(5);
      case 'c':
        return d_.below(5);
      case 'k':
        return 0x7fffff00 + d_.below(128);
      default:
        return anything();
    }
  }

  GROSR_DEVICE void fill_raw(drawn& c) {
    const std::uint32_t kind = d_.below(8);
    if (kind < 5) {
      const raw_call& r = w_.raw[d_.below(w_.raws)];
      c.number = r.number;
      for (unsigned i = 0; i < 6; ++i) c.a[i] = r.kinds[i] != 0 ? argument(r.kinds[i]) : 0;
      return;
    }
    c.number = kind == 5   ? static_cast<long>(d_.below(1 << 16))
               : kind == 6 ? static_cast<long>(d_.next() >> d_.below(64))
                           : static_cast<long>(330 + d_.below(150));
    // These are drawn by what they take, or not at all: they may take all memory and all room.
    if (c.number == SYS_mmap || c.number == SYS_fallocate || c.number == SYS_mlockall)
      c.number = SYS_getppid;
    for (unsigned i = 0; i < 6; ++i) c.a[i] = anything();
  }

  GROSR_DEVICE void name(drawn& c, bool udp) {
    m_->name = {};
    m_->name.sin_family = d_.chance(16) ? static_cast<sa_family_t>(d_.below(45)) : AF_INET;
    const std::uint32_t port = d_.below(5);
    m_->name.sin_port = static_cast<in_port_t>(port == 0   ? 0
                                               : port == 1 ? d_.next() | 0x80
                                               : port == 2 ? w_.ports[d_.below(listened)]
                                               : udp       ? w_.udp_name_port
                                                           : w_.tcp_name_port);
    m_->name.sin_addr.s_addr = 0x0100007f;
    m_->length = d_.chance(8) ? d_.below(300) : sizeof(sockaddr_in);
    c.number = static_cast<long>(m_->length < 128 || d_.chance(2) ? m_->length : 128);
  }

  /// Some that lie one behind the other in the buffer, some of them empty.
  GROSR_DEVICE void vectors(drawn& c) {
    std::uint64_t at = 0;
    for (iovec& one : m_->vectors) {
      const std::uint64_t left = c.buffer == nullptr ? 0 : c.bytes - at;
      const std::uint64_t n = d_.chance(3) ? 0 : d_.chance(2) ? left : d_.next() % (left + 1);
      one = {n == 0 && d_.chance(2) ? nullptr : c.buffer + at, n};
      at += n;
    }
    c.bytes = at;
    const int odd[] = {-1, 1025, 1 << 30, INT32_MIN};
    c.flags = d_.chance(16) ? odd[d_.below(4)] : static_cast<int>(d_.below(9));
    c.a[0] = !d_.chance(32) || (c.flags > 0 && c.flags <= 8);
  }

  /// A number in the upper half of a word of a print: how long a text is.
  GROSR_DEVICE std::uint64_t forged_length() {
    const std::uint32_t kind = d_.below(4);
    return (kind == 0 ? d_.next() >> 32 : kind == 1 ? 16380 + d_.below(8) : length(4097)) << 32;
  }

  /// A record of a print that no print would write.
  GROSR_DEVICE GROSR_NOINLINE void forge_print(drawn& c) {
    const std::uint32_t lane = simt::block_id() * simt::block_size() + simt::thread_id();
    const std::uint32_t places = (shared_room - forged_at) / (8 * forged_words);
    unsigned char* const words = w_.shared + forged_at + lane % places * (8 * forged_words);
    for (std::uint32_t i = 0; i < forged_words; ++i) {
      std::uint64_t word = i % 2 == 0 ? d_.below(8) : d_.chance(4) ? 6 : d_.below(8);
      if (d_.chance(32)) word = d_.next();
      if (i == 0) word = d_.chance(8) ? d_.next() >> d_.below(64) : d_.below(80);
      word |= forged_length();
      __builtin_memcpy(words + 8 * i, &word, 8);
    }
    c.marked = false;
    c.offset = is_forged;
    for (std::uint64_t& a : c.a) a = pointer();
    if (!d_.chance(8)) c.a[1] = reinterpret_cast<std::uint64_t>(words);
    if (!d_.chance(4)) c.a[0] = reinterpret_cast<std::uint64_t>(shared_path());
  }

  GROSR_DEVICE void fill(drawn& c, bool other_outside);

  const world& w_;
  dice& d_;
  const sys::view& v_;
  lane_memory* m_;
  unsigned char* buffer_;
  std::uint32_t room_;
};

/// What else the call that was drawn needs.
GROSR_DEVICE inline void drawer::fill(drawn& c, bool other_outside) {
  const bool is_path = c.what == op::open || c.what == op::openat || c.what == op::unlink ||
                       c.what == op::rename || c.what == op::mkdir;
  c.outside =
      is_path && c.path != nullptr && (c.outside || (c.what == op::rename && other_outside));
  switch (c.what) {
    case op::raw:
      fill_raw(c);
      break;
    case op::print:
      c.marked = !d_.chance(4);
      c.offset = d_.below(6);
      if (w_.hostile && !w_.in_place && d_.chance(2)) forge_print(c);
      break;
    case op::openat:
      if (d_.chance(3)) c.fd = AT_FDCWD;
      break;
    case op::add:
      c.a[0] = d_.next();
      c.a[1] = d_.below(1000);
      break;
    case op::fallocate:
      c.bytes = d_.chance(4) ? 1ull << 62 | d_.next() : d_.below(1 << 18);
      c.flags = d_.chance(2) ? 0 : static_cast<int>(d_.below(256));
      break;
    case op::lseek:
      c.flags = static_cast<int>(d_.below(6));
      break;
    case op::unlink:
      c.flags = d_.chance(3) ? AT_REMOVEDIR : d_.chance(16) ? static_cast<int>(d_.next()) : 0;
      break;
    case op::readv:
    case op::writev:
      vectors(c);
      break;
    case op::socket:
      c.fd = d_.chance(6) ? static_cast<int>(d_.below(45)) : d_.chance(6) ? AF_INET6 : AF_INET;
      c.flags = (d_.chance(8)   ? static_cast<int>(d_.below(12))
                 : d_.chance(2) ? SOCK_STREAM
                                : SOCK_DGRAM) |
                (d_.chance(3) ? SOCK_NONBLOCK : 0);
      c.number = d_.chance(16) ? static_cast<long>(d_.below(256)) : 0;
      break;
    case op::bind:
    case op::connect:
    case op::sendto:
      name(c, d_.chance(2));
      c.flags = d_.chance(2) ? 0 : static_cast<int>(1u << d_.below(31));
      break;
    case op::send:
    case op::recv:
    case op::recvfrom:
      c.flags = d_.chance(3)   ? MSG_DONTWAIT
                : d_.chance(4) ? static_cast<int>(1u << d_.below(31))
                               : 0;
      m_->length = d_.chance(8) ? d_.below(300) : 128;
      if (m_->length > 128 && w_.in_place) m_->length = 128;
      break;
    case op::accept:
    case op::getsockname:
    case op::getpeername:
      m_->length = d_.chance(8) ? d_.below(300) : sizeof(sockaddr_in);
      if (w_.in_place && m_->length > 128) m_->length = 128;
      c.flags = d_.chance(2) ? SOCK_NONBLOCK : 0;
      break;
    case op::setsockopt:
    case op::getsockopt: {
      const int levels[] = {SOL_SOCKET, SOL_SOCKET,   IPPROTO_TCP,
                            IPPROTO_IP, IPPROTO_IPV6, IPPROTO_UDP};
      c.flags = levels[d_.below(6)];
      c.number = d_.below(d_.chance(4) ? 256 : 64);
      if (d_.chance(8)) c.flags = SOL_SOCKET, c.number = SO_LINGER;
      for (unsigned i = 0; i < 16; i += 4) {
        const auto word = static_cast<std::uint32_t>(small());
        __builtin_memcpy(m_->option + i, &word, 4);
      }
      m_->option_length = d_.chance(4) ? d_.below(1025) : d_.chance(2) ? 4 : 16;
      break;
    }
    case op::poll:
      c.bytes = d_.below(9);
      for (auto& p : m_->polled) p = {descriptor(), static_cast<short>(d_.below(64)), 0};
      c.flags = d_.chance(100) ? -1 : d_.chance(3) ? 0 : static_cast<int>(d_.below(30));
      break;
    case op::mmap:
      c.bytes = d_.chance(8) ? d_.next() | 1ull << 50 : 4096 * d_.below(4) + d_.below(2);
      c.mode = d_.chance(8) ? static_cast<unsigned>(d_.below(64)) : PROT_READ | PROT_WRITE;
      c.flags = d_.chance(2)   ? MAP_PRIVATE | MAP_ANONYMOUS
                : d_.chance(4) ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED
                               : static_cast<int>(d_.below(1 << 16));
      c.a[0] = d_.chance(2) ? 0 : address();
      if (d_.chance(2)) c.fd = -1;
      c.offset = d_.chance(2) ? 0 : c.offset;
      c.outside = (c.mode & PROT_EXEC) != 0 || (c.flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
      break;
    case op::munmap:
    case op::madvise:
      c.a[0] = address();
      c.bytes = argument('m');
      c.flags = static_cast<int>(d_.below(26));
      break;
    case op::nanosleep:
      m_->span = {0, static_cast<long>(d_.below(3000000))};
      if (d_.chance(8)) m_->span = {static_cast<time_t>(d_.next()), -1};
      break;
    case op::clock_gettime:
      c.flags = d_.chance(4) ? static_cast<int>(d_.next()) : static_cast<int>(d_.below(12));
      break;
    case op::getrandom:
      c.flags = d_.chance(8) ? static_cast<int>(d_.below(16)) : 0;
      break;
    case op::getrusage:
      c.flags = d_.chance(8) ? static_cast<int>(d_.next()) : RUSAGE_SELF;
      break;
    default:
      break;
  }
}

}  // namespace grosr::tool::fuzz
