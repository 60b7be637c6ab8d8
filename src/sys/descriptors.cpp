#include "sys/descriptors.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

namespace grosr::sys {

static_assert(sizeof(std::atomic<std::uint64_t>) == 8);

namespace {

// Linux grows a program's table of descriptors as they are opened, doubling it, and each time all
// threads that open wait until no processor looks at the old one: 10 ms and more.
void grow_table(std::uint32_t most) {
  rlimit limit{};
  const int any = ::open("/", O_PATH | O_CLOEXEC);
  if (any < 0) return;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur > 64) {
    const int last =
        ::fcntl(any, F_DUPFD_CLOEXEC,
                static_cast<int>(std::min<rlim_t>({most, limit.rlim_cur - 64, 16384})));
    if (last >= 0) ::close(last);
  }
  ::close(any);
}

/// Closing waits for nobody: what a socket still has to send is sent afterwards. (A time of 0,
/// which resets the connection, does not wait.)
void forget_linger(int fd) {
  linger l{};
  socklen_t bytes = sizeof l;
  if (::getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &bytes) != 0 || l.l_onoff == 0 || l.l_linger == 0)
    return;
  l.l_onoff = 0;
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
}

}  // namespace

// calloc, because pages that are never touched are never there.
descriptors::descriptors(std::uint32_t most, unsigned threads)
    : most_(most),
      threads_(threads),
      words_(static_cast<std::atomic<bits>*>(std::calloc(end, sizeof(bits) * apart)),
             [](std::atomic<bits>* p) { std::free(p); }) {
  if (!words_) throw std::bad_alloc();
  grow_table(most);
}

descriptors::~descriptors() {
  for (int fd = 0; fd < end && open() != 0; ++fd)
    if (const bits w = word(fd).load(); (w & (known | granted)) == known) end_of(fd, w);
}

descriptors::bits descriptors::kind_of(int fd) {
  struct stat s {};
  if (::fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) return 0;
  return regular | by_flags(::fcntl(fd, F_GETFL));
}

descriptors::bits descriptors::by_flags(int flags) {
  return ((flags & O_DIRECT) != 0 ? direct : bits{0}) |
         ((flags & (O_SYNC | O_DSYNC)) != 0 ? synced : bits{0});
}

/// Asks what is still unseen.
descriptors::bits descriptors::look_at(int fd) const {
  struct stat s {};
  const bool is = ::fstat(fd, &s) == 0 && S_ISREG(s.st_mode);
  if (is) word(fd).fetch_or(regular, std::memory_order_relaxed);
  word(fd).fetch_and(~unseen, std::memory_order_relaxed);
  return is ? regular : 0;
}

descriptors::bits descriptors::look_at_type(int fd) const {
  int type = 0;
  socklen_t bytes = sizeof type;
  const bool is = ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
  const bits found = typed | (is ? stream : bits{0});
  // The program may make something else of a descriptor that nobody holds here.
  if (is_known(fd)) word(fd).fetch_or(found, std::memory_order_relaxed);
  return found & stream;
}

std::optional<descriptors::room> descriptors::make_room() {
  if (open_.fetch_add(1) < most_) return room(open_);
  open_.fetch_sub(1);
  return std::nullopt;
}

long descriptors::add(room r, int fd, bool waits) {
  return add_word(std::move(r), fd, kind_of(fd), waits);
}

long descriptors::add_opened(room r, int fd, int flags, bool waits) {
  return add_word(std::move(r), fd, unseen | by_flags(flags), waits);
}

long descriptors::add_word(room r, int fd, bits what, bool waits) {
  if (fd >= end) return -EMFILE;
  r.open_ = nullptr;  // it is counted until end_of()
  // With a raw policy kernels close without a word, and calls on what it was may still end.
  const bits is = known | what | (waits ? waiting : bits{0});
  bits w = word(fd).load(std::memory_order_relaxed);
  while (
      !word(fd).compare_exchange_weak(w, is | (w & (uses | shorts)), std::memory_order_release)) {
  }
  return fd;
}

void descriptors::replaced(int fd) {
  const bits is = kind_of(fd);
  bits w = word(fd).load(std::memory_order_relaxed);
  while (!word(fd).compare_exchange_weak(
      w, is | (w & (known | granted | waiting | closing | shared | uses | shorts)),
      std::memory_order_release)) {
  }
}

bool descriptors::grant(int fd) {
  if (fd < 0 || fd >= end || ::fcntl(fd, F_GETFD) < 0) return false;
  // The descriptor may have become another thing since it was granted before; calls that use it
  // still do.
  const bits is = known | granted | shared | kind_of(fd);
  bits w = word(fd).load(std::memory_order_relaxed);
  if ((w & (known | granted)) == known) return true;  // kernels opened it
  while (
      !word(fd).compare_exchange_weak(w, is | (w & (uses | shorts)), std::memory_order_release)) {
  }
  return true;
}

std::optional<descriptors::use> descriptors::acquire(int fd) {
  if (fd < 0 || fd >= end) return std::nullopt;
  bits w = word(fd).load(std::memory_order_acquire);
  do {
    if ((w & known) == 0 || (w & closing) != 0) return std::nullopt;
  } while (!word(fd).compare_exchange_weak(w, w + 1, std::memory_order_acquire));
  return use(*this, fd);
}

bool descriptors::waits(int fd) const {
  return (word(fd).load(std::memory_order_relaxed) & waiting) != 0;
}

bool descriptors::is_closing(int fd) const {
  return (word(fd).load(std::memory_order_acquire) & closing) != 0;
}

bool descriptors::begin_short(unsigned thread, unsigned which, int fd) {
  if (fd < 0 || fd >= end) return false;
  short_uses& mine = shorts_[thread];
  bits w = word(fd).load(std::memory_order_acquire);
  while ((w & (known | closing | shared)) == known) {
    const bits meets = (w & shorts) != 0 ? shared : 0;
    if (!word(fd).compare_exchange_weak(w, (w | meets) + one_short, std::memory_order_seq_cst))
      continue;
    mine.counted[which] = fd;
    return true;
  }
  if ((w & (known | closing)) != known) return false;
  // A hazard pointer (Michael, "Hazard pointers", 2004): said first, looked at afterwards. Who
  // closes after that look sees `shared`, and looks for it.
  mine.fd[which].store(fd, std::memory_order_seq_cst);
  w = word(fd).load(std::memory_order_seq_cst);
  if ((w & (known | closing | shared)) == (known | shared)) return true;
  mine.fd[which].store(-1, std::memory_order_release);
  // Closed meanwhile, and perhaps another one has its number, which nobody was promised.
  return false;
}

void descriptors::end_short(unsigned thread) {
  short_uses& mine = shorts_[thread];
  for (unsigned i = 0; i < at_a_time; ++i) {
    mine.fd[i].store(-1, std::memory_order_release);
    if (mine.counted[i] >= 0)
      word(std::exchange(mine.counted[i], -1)).fetch_sub(one_short, std::memory_order_release);
  }
}

/// What it was, its new use included; 0 if it was not open.
descriptors::bits descriptors::begin_close(int fd) {
  if (fd < 0 || fd >= end) return 0;
  bits w = word(fd).load(std::memory_order_acquire);
  do {
    if ((w & known) == 0 || (w & closing) != 0) return 0;
  } while (!word(fd).compare_exchange_weak(w, (w | closing) + 1, std::memory_order_seq_cst));
  return (w | closing) + 1;
}

void descriptors::await_shorts(int fd, bool may_be_shared) const {
  while ((word(fd).load(std::memory_order_acquire) & shorts) != 0) std::this_thread::yield();
  if (!may_be_shared) return;
  // All of one order: `closing` (begin_close), then these loads; in begin_short() what it holds,
  // then its look at the word. So that look sees `closing`, or these loads see what it holds.
  for (unsigned i = 0; i < threads_; ++i)
    for (const auto& held : shorts_[i].fd)
      while (held.load(std::memory_order_seq_cst) == fd) std::this_thread::yield();
}

void descriptors::release(int fd) {
  const bits after = word(fd).fetch_sub(1, std::memory_order_acq_rel) - 1;
  if ((after & (uses | closing)) == closing) end_of(fd, after);
}

void descriptors::end_of(int fd, bits last) {
  // Else the program has granted it again, and keeps it.
  if (!word(fd).compare_exchange_strong(last, 0, std::memory_order_acq_rel)) return;
  if ((last & granted) != 0) return;
  open_.fetch_sub(1);
  if ((last & (regular | unseen)) == 0) forget_linger(fd);
  ::close(fd);
}

}  // namespace grosr::sys
