// What is to be called, and the bytes that travel with it.
#pragma once

#include <cstddef>

#include "grosr/sys/detail/copy.hpp"
#include "grosr/sys/detail/issue.hpp"

namespace grosr::sys {

/// How bytes travel: to the server, from it, or there and back. `by_result`: as many as the call
/// returned come back; else all, when it did not fail.
enum class travel : std::uint8_t { to_server, from_server, both, by_result };

/// Bytes behind a pointer argument.
struct part {
  void* at = nullptr;
  std::uint32_t bytes = 0;
  std::uint8_t argument = 0;
  travel how = travel::to_server;

  GROSR_DEVICE bool goes() const { return how == travel::to_server || how == travel::both; }
  GROSR_DEVICE bool comes() const { return how != travel::to_server; }
};

/// What part 0 is. `bytes`: so many that a whole block copies them. `vectors`: an array of iovecs;
/// the bytes that travel, its first ones, lie where they say.
enum class bulk : std::uint8_t { none, bytes, vectors };

/// A call before it is made. `Parts`: how many of its arguments are pointers.
template <unsigned Parts, bulk Bulk = bulk::none>
struct operation {
  call_record record{};
  part part_of[Parts == 0 ? 1 : Parts];
  /// Bytes that the host sees stay where they are until the call has ended. Not so if the caller
  /// goes on before: they travel like others.
  bool stays = true;
  long bad = 0;  ///< what is wrong with it: the result, and no call is made

  GROSR_DEVICE explicit operation(call_number number, std::uint8_t flags = flag_wrapped) {
    record.number = number;
    record.flags = flags;
  }
};

/// Whether the host reads and writes these bytes where they are.
GROSR_DEVICE inline bool host_sees(const view& v, const void* p, std::size_t bytes) {
  if (v.host_sees_all) return true;
  const auto begin = reinterpret_cast<std::uint64_t>(p);
  const shared_ranges& ranges = *v.shared;
  const std::uint32_t count =
      simt::atomic_ref<std::uint32_t>(const_cast<std::uint32_t&>(ranges.count)).load(simt::acquire);
  for (std::uint32_t i = 0; i < count; ++i)
    if (begin >= ranges.at[i].begin && begin + bytes <= ranges.at[i].end) return true;
  return false;
}

/// Calls f(i) for the parts from First on.
template <unsigned Parts, unsigned First = 0, class F>
GROSR_DEVICE inline void for_parts(F&& f) {
  if constexpr (First < Parts) {
    f(First);
    for_parts<Parts, First + 1>(f);
  }
}

/// Where the parts of a call lie in its chunk.
template <unsigned Parts>
struct stowage {
  static constexpr std::uint32_t in_place = 0xffffffffu;
  std::uint32_t offset[Parts == 0 ? 1 : Parts];  ///< or in_place: not in the chunk
  std::uint32_t total = 0;
  std::uint32_t chunk = no_place;
  std::uint8_t size = 0;

  /// False when a pointer is null and there are bytes.
  template <bulk Bulk>
  GROSR_DEVICE bool plan(const view& v, const operation<Parts, Bulk>& o) {
    bool good = true;
    for_parts<Parts>([&](unsigned i) {
      const part& p = o.part_of[i];
      offset[i] = in_place;
      if (p.bytes == 0) return;
      good = good && p.at != nullptr;
      if (!good || (o.stays && host_sees(v, p.at, p.bytes))) return;
      // The content begins where the other end of the copy does within 16 bytes.
      offset[i] = (total + 15u) / 16 * 16 +
                  static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(p.at) & 15);
      total = offset[i] + p.bytes;
    });
    while (size + 1u < chunk_sizes && total > chunk_stride(size)) ++size;
    return good;
  }

  GROSR_DEVICE unsigned char* base(const view& v) const {
    return v.arena[size] + std::size_t{chunk} * chunk_stride(size);
  }

  /// The argument that the server gets for part i.
  GROSR_DEVICE std::uint64_t address(const view& v, const part& p, unsigned i) const {
    return offset[i] == in_place ? reinterpret_cast<std::uint64_t>(p.at)
                                 : reinterpret_cast<std::uint64_t>(base(v) + offset[i]);
  }

  /// Each lane of `mask` that needs a chunk gets one, of its size or larger. Whether it has what it
  /// needs. They call together.
  template <bool Awaited>
  GROSR_DEVICE bool try_claim(const view& v, std::uint32_t mask) {
    if constexpr (Parts == 0) {
      return true;
    } else {
      std::uint32_t lacking = simt::ballot(mask, total != 0);
      std::uint8_t wanted = size;
      for (unsigned s = 0; s < chunk_sizes && lacking != 0; ++s) {
        const bool asks = (lacking >> simt::lane_id() & 1) != 0 && wanted <= s;
        const std::uint32_t asking = simt::ballot(mask, asks);
        if (asks) {
          chunk = claim_each(v, Awaited ? v.awaited_chunks[s] : v.chunks[s], asking);
          size = static_cast<std::uint8_t>(s);
        }
        simt::sync_warp(mask);
        lacking = simt::ballot(mask, total != 0 && chunk == no_place);
      }
      if (chunk == no_place) size = wanted;
      return total == 0 || chunk != no_place;
    }
  }

  GROSR_DEVICE void free(const view& v) {
    if (chunk != no_place) v.chunks[size].free(chunk);
    chunk = no_place;
  }
};

/// Bytes of a part that come back.
GROSR_DEVICE inline std::size_t bytes_back(const part& p, long result) {
  if (!p.comes() || result < 0) return 0;
  if (p.how != travel::by_result) return p.bytes;
  return static_cast<std::uint64_t>(result) < p.bytes ? static_cast<std::size_t>(result) : p.bytes;
}

}  // namespace grosr::sys
