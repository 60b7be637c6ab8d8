// Calls that may wait for the disk. Bytes in the page cache are read at once; bytes that are not,
// and what always waits for the disk, goes to the ring, or to a thread where there is no ring.
#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>

#include "grosr/queue/completion.hpp"
#include "sys/linux_result.hpp"
#include "sys/waiting_call.hpp"

namespace grosr::sys {
namespace {

// Asking what is cached costs a tenth of reading 4 KiB of it. After so many reads in a row that
// were, a thread does not ask any more, until a read takes longer than one of the page cache does.
constexpr unsigned usual_cached = 256;
constexpr double slow_ns = 20'000, cached_bytes_per_ns = 4;

/// What Linux is asked for, with these arguments of the system call.
void set(disk_call& c, long number, const std::uint64_t* a) {
  using what = disk_call::what;
  const bool moves = number == SYS_pread64 || number == SYS_pwrite64;
  c.makes = number == SYS_pread64    ? what::read
            : number == SYS_pwrite64 ? what::write
            : number == SYS_fsync    ? what::sync
                                     : what::sync_data;
  c.fd = static_cast<int>(a[0]);
  c.memory = moves ? a[1] : 0;
  c.bytes = moves ? static_cast<std::uint32_t>(a[2]) : 0;
  c.offset = moves ? a[3] : 0;
}

/// Makes it here.
long make_here(const disk_call& c, long number) {
  const std::uint64_t a[6] = {static_cast<std::uint64_t>(c.fd), c.memory, c.bytes, c.offset};
  return linux_result(number, a);
}

constexpr std::uint64_t most_at_once = 0x7ffff000;  // Linux never moves more in one call

/// pread64 of what is there: -EAGAIN, or fewer bytes, where Linux would wait for more.
long read_cached(const std::uint64_t* a) {
  iovec to{reinterpret_cast<void*>(a[1]), a[2]};
  const std::uint64_t made[] = {a[0], reinterpret_cast<std::uint64_t>(&to), 1, a[3], 0, RWF_NOWAIT};
  return linux_result(SYS_preadv2, made);
}

bool is_refused_to(long result) {
  return result == -EOPNOTSUPP || result == -ENOSYS || result == -EPERM;
}

void move_on(std::uint64_t* a, long bytes) {
  a[1] += static_cast<std::uint64_t>(bytes);
  a[2] -= static_cast<std::uint64_t>(bytes);
  a[3] += static_cast<std::uint64_t>(bytes);
}

long in_all(std::uint64_t before, long result) {
  if (before == 0) return result;
  return static_cast<long>(before) + std::max(result, 0L);
}

}  // namespace

/// Whether the call is call_disk's to make.
bool service::waits_for_disk(const call_record& c) {
  const int fd = static_cast<int>(c.argument[0]);
  const bool moves = c.number == SYS_pread64 || c.number == SYS_pwrite64;
  if (!moves) return c.number == SYS_fsync || c.number == SYS_fdatasync;
  if (c.number == SYS_pread64) {
    if (!descriptors_.is_read_at_once(fd)) return false;
    if (!descriptors_.is_direct(fd) && !descriptors_.tells_cached(fd)) return false;
  } else if (!descriptors_.is_regular(fd) ||
             (!descriptors_.is_direct(fd) && !descriptors_.is_synced(fd))) {
    return false;
  }
  // Offsets that Linux refuses, or takes for something else when it is asked otherwise.
  if (static_cast<std::int64_t>(c.argument[3]) < 0 || c.argument[2] > most_at_once) return false;
  return may_keep(c.argument[1], c.argument[2]);
}

long service::call_disk(service_thread& t, const request& q, const linux_call& info) {
  const int fd = static_cast<int>(q.call.argument[0]);
  const bool tries = info.number == SYS_pread64 && !descriptors_.is_direct(fd);
  std::uint64_t a[max_arguments];
  long result = 0;
  if (tries && t.cached >= usual_cached) {
    result = linux_result(info.number, q.call.argument);
    const double ns = static_cast<double>(now_ticks() - q.taken) * ns_per_tick_;
    if (ns > slow_ns + static_cast<double>(q.call.argument[2]) / cached_bytes_per_ns) t.cached = 0;
    return result;
  }
  do {
    std::copy_n(q.call.argument, max_arguments, a);
    result = injected_result(info.number, a);
  } while (result == -EINTR);
  if (result != 0) return result;
  std::uint64_t progress = 0;
  if (tries) {
    while ((result = read_cached(a)) > 0) {
      progress += static_cast<std::uint64_t>(result);
      move_on(a, result);
      if (a[2] != 0) continue;
      ++t.cached;
      return static_cast<long>(progress);
    }
    if (is_refused_to(result)) {
      descriptors_.tells_no_cached(fd);
      return in_all(progress, linux_result(info.number, a));
    }
    if (result != -EAGAIN) return in_all(progress, result);
    t.cached = 0;
  }
  auto file = descriptors_.acquire(fd);
  if (!file) return in_all(progress, -EBADF);
  waiting_call& w = begin_waiting(t, q, info, std::move(*file));
  w.progress = progress;
  set(w, info.number, a);
  result = waits_or(w, wait_for_disk(t, w));
  if (result == -EAGAIN) result = linux_result(info.number, a);  // no thread is free
  return result == parked ? parked : in_all(progress, result);
}

/// Hands a call to the ring, or to a thread. 0, or why it cannot wait.
long service::wait_for_disk(service_thread& t, waiting_call& w) {
  w.done = [](disk_call& self, long result) {
    auto& c = static_cast<waiting_call&>(self);
    service& s = *c.owner;
    if (result == -EINTR && (result = s.ring_.submit(c)) == 0) return;
    if (result == -EAGAIN) {  // not this way, or not now
      if (s.make_on_thread(c) == 0) return;
      queue::hand_over_kept();  // it may wait
      result = make_here(c, c.info->number);
    }
    s.end_disk(c, result);
  };
  const long refused = ring_.submit(w);
  if (refused == 0) count(t.counts.ring);
  return refused == -ENOSYS ? make_on_thread(w) : refused;
}

long service::make_on_thread(waiting_call& w) {
  w.act = [](job& self, turn how) {
    auto& c = static_cast<waiting_call&>(self);
    c.owner->end_disk(c, how == turn::stopped ? -ESHUTDOWN : make_here(c, c.info->number));
  };
  return workers_.submit_now(w);
}

void service::end_disk(waiting_call& w, long result) {
  const double ns = static_cast<double>(now_ticks() - w.made.taken) * ns_per_tick_;
  end_waiting(w, in_all(w.progress, result), static_cast<std::uint64_t>(ns));
}

}  // namespace grosr::sys
