// readv and writev: the bytes of several pieces of memory in one call, for files and whatever else
// read and write are for (files.hpp). As many vectors as have piece_bytes together are gathered in
// one chunk and are one call to Linux, wherever they lie; a longer one goes in pieces, as with read
// and write. So more than piece_bytes are moved by several calls, between which others may move
// some.
//
// A started call moves at most piece_bytes; the vectors stay as they are until it was waited for.
// The vectors are those of the group's leader; all threads of a block pass the same ones. A file
// that makes some includes <sys/uio.h>.
#pragma once

#include <limits.h>

#include "grosr/sys/files.hpp"

namespace grosr::sys {

namespace detail {

/// Vectors of one call: from `first` to before `end`, where another one may begin.
struct vector_run {
  std::uint32_t first = 0, end = 0;
  std::uint64_t bytes = 0;
};

/// 0, or what is wrong with the vectors; nothing is moved then.
GROSR_DEVICE inline long check_vectors(const iovec* vectors, int count) {
  if (count < 0 || count > IOV_MAX) return -EINVAL;
  if (count != 0 && vectors == nullptr) return -EFAULT;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    constexpr auto most = static_cast<std::uint64_t>(SSIZE_MAX);
    const memory_piece v = vector_at(vectors, i);
    if (v.bytes > most - total) return -EINVAL;
    if (v.bytes != 0 && v.base == nullptr) return -EFAULT;
    total += v.bytes;
  }
  return 0;
}

/// What the next call moves, from vector `at` on: one vector of any length, or as many as have
/// piece_bytes together.
GROSR_DEVICE inline vector_run next_run(const iovec* vectors, std::uint32_t count,
                                        std::uint32_t at) {
  while (at + 1 < count && vector_at(vectors, at).bytes == 0) ++at;
  vector_run r{at, at, 0};
  if (at == count) return r;
  do r.bytes += vector_at(vectors, r.end++).bytes;
  while (r.end < count && r.bytes <= piece_bytes &&
         vector_at(vectors, r.end).bytes <= piece_bytes - r.bytes);
  while (r.end < count && vector_at(vectors, r.end).bytes == 0) ++r.end;
  return r;
}

/// A call that moves the first `bytes` bytes of vectors.
template <bool Out>
GROSR_DEVICE auto of_vectors(int file, const iovec* vectors, std::uint32_t bytes) {
  auto* const at = const_cast<iovec*>(vectors);
  auto o = make<1, bulk::vectors>(Out ? SYS_write : SYS_read, file, at, bytes);
  o.part_of[0] = Out ? bytes_to(1, at, bytes) : bytes_from(1, at, bytes, travel::by_result);
  o.stays = false;
  return o;
}

/// Whether this lane's arguments count.
template <class Caller>
GROSR_DEVICE bool leads(const Caller& c) {
  return Caller::group != granularity::warp || simt::lane_id() == simt::lowest_bit(c.mask());
}

/// Makes a blocking call for one run.
template <bool Out, class Caller>
GROSR_DEVICE long move_run(const Caller& c, int file, const iovec* vectors, const vector_run& r) {
  if (r.bytes <= piece_bytes)
    return invoke(c, of_vectors<Out>(file, vectors_from(vectors, r.first),
                                     static_cast<std::uint32_t>(r.bytes)));
  void* const base = leads(c) ? vector_at(vectors, r.first).base : nullptr;
  if constexpr (Out)
    return write(c, file, base, r.bytes);
  else
    return read(c, file, base, r.bytes);
}

/// All runs, one after another, for callers who all learn each result.
template <bool Out, class Caller>
GROSR_DEVICE long move_runs(const Caller& c, int file, const iovec* vectors, int count) {
  // What the leader of a warp has; the vectors may be on its stack.
  const auto led = [&](auto value) {
    if constexpr (Caller::group == granularity::warp)
      return simt::shuffle(c.mask(), value, simt::lowest_bit(c.mask()));
    else
      return value;
  };
  const long bad = led(leads(c) ? check_vectors(vectors, count) : 0L);
  if (bad != 0) return bad;
  const auto all = static_cast<std::uint32_t>(led(count));
  vector_run r;
  for (long moved = 0;;) {
    if (leads(c)) r = next_run(vectors, all, r.end);
    r.end = led(r.end);
    r.bytes = led(r.bytes);
    const long result = move_run<Out>(c, file, vectors, r);
    if (result < 0) return moved != 0 ? moved : result;
    moved += result;
    if (r.end == all || static_cast<std::uint64_t>(result) != r.bytes) return moved;
  }
}

/// Starts a call for the first bytes of the vectors.
template <bool Out, class Caller>
GROSR_DEVICE auto start_run(const Caller& c, int file, const iovec* vectors, int count) {
  long bad = 0;
  std::uint64_t bytes = 0;
  if (leads(c)) {
    bad = check_vectors(vectors, count);
    const std::size_t all = count < 0 ? 0 : static_cast<std::size_t>(count);
    for (std::size_t i = 0; bad == 0 && i < all && bytes < piece_bytes; ++i)
      bytes += vector_at(vectors, i).bytes;
  }
  if (bytes > piece_bytes) bytes = piece_bytes;
  auto o = of_vectors<Out>(file, vectors, static_cast<std::uint32_t>(bytes));
  o.bad = bad;
  return invoke(c, o);
}

/// readv or writev; see there.
template <bool Out, class Caller>
GROSR_DEVICE auto move_vectors(const Caller& c, int file, const iovec* vectors, int count) {
  if constexpr (Caller::started) {
    return start_run<Out>(c, file, vectors, count);
  } else if constexpr (Caller::group == granularity::grid) {
    const bool calls = comes_to_call(c) && simt::warp_id() == 0;
    long result = -EINPROGRESS;
    if (calls) {
      const caller<granularity::warp, ordering::strong, false, Caller::attempts> mine(&c.where());
      result = move_runs<Out>(mine, file, vectors, count);
    }
    return tell_grid(c, calls, result);
  } else if constexpr (Caller::order == ordering::producer) {
    if (check_vectors(vectors, count) == 0) {
      const auto all = static_cast<std::uint32_t>(count);
      const vector_run r = next_run(vectors, all, 0);
      if (r.end == all) return move_run<Out>(c, file, vectors, r);
    }
    // After each run everybody must know whether there is another one.
    const caller<granularity::block, ordering::strong, false, Caller::attempts> knowing(&c.where());
    const long result = move_runs<Out>(knowing, file, vectors, count);
    return simt::warp_id() == 0 ? result : long{-EINPROGRESS};
  } else {
    return move_runs<Out>(c, file, vectors, count);
  }
}

}  // namespace detail

/// Reads from where the descriptor stands, to `count` vectors in turn. How many bytes; 0 at the
/// end. -EINVAL: more than IOV_MAX vectors, or more bytes than a result can count; -EFAULT: null,
/// with a length.
template <class Caller>
GROSR_DEVICE auto readv(const Caller& c, int file, const iovec* vectors, int count) {
  return detail::move_vectors<false>(c, file, vectors, count);
}

/// Writes `count` vectors in turn where the descriptor stands. How many bytes. Errors as of
/// readv().
template <class Caller>
GROSR_DEVICE auto writev(const Caller& c, int file, const iovec* vectors, int count) {
  return detail::move_vectors<true>(c, file, vectors, count);
}

}  // namespace grosr::sys
