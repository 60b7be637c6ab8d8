// Arrays of a world: their memory, and copies between it and the host.
#include <fmt/format.h>

#include <algorithm>

#include "net/world_parts.hpp"

namespace grosr::net {

using simt::space;

static constexpr std::uint64_t most_part = std::uint64_t{1} << 40;

void world_core::parts::tell(std::uint32_t number, std::uint32_t i, const array_part& part) {
  simt::copy_bytes(ranks[i].where, memory[i].arrays.data() + number, &part, sizeof part);
}

std::uint32_t world_core::add_array(const layout& shape, std::uint32_t element_bytes) {
  parts& p = *parts_;
  const auto hold = p.one_at_a_time();
  if (p.others) {
    const auto how = static_cast<std::uint32_t>(shape.find(1).rank);  // 1: cyclic, or one each
    const std::vector<said> found = p.with.gather(
        collective::make_array,
        said().add(shape.size()).add(shape.size_of(0)).add(how).add(element_bytes), p.soon());
    for (std::size_t q = 0; q < found.size(); ++q)
      if (found[q].rest() != found[p.all.process].rest()) {
        said theirs = found[q];
        throw error(errc::misuse,
                    fmt::format("array: process {} makes one of {} elements, and process {} one of "
                                "{} elements or of another kind; make the same in all processes",
                                p.all.process, shape.size(), q, theirs.take<std::uint64_t>()));
      }
  }
  std::exception_ptr failed;
  std::uint32_t number = most_arrays;
  try {
    auto free = std::find_if(p.arrays.begin(), p.arrays.end(),
                             [](const array_memory& a) { return a.element_bytes == 0; });
    if (free == p.arrays.end()) {
      if (p.arrays.size() == most_arrays)
        throw error(errc::invalid_option,
                    fmt::format("array: a world has at most {}; free some", most_arrays));
      free = p.arrays.emplace(p.arrays.end());
    }
    if (shape.size_of(0) > most_part)
      throw error(errc::invalid_option,
                  fmt::format("array: {} elements were asked for on a rank; it has room for 2^40",
                              shape.size_of(0)));
    number = static_cast<std::uint32_t>(free - p.arrays.begin());
    std::vector<simt::buffer<unsigned char>> all;
    for (std::uint32_t i = 0; i < p.here(); ++i)
      all.emplace_back(p.ranks[i].where, space::device,
                       shape.size_of(p.first() + i) * element_bytes);
    std::size_t bytes = 0;  // all ranks of a process lie on one device
    for (const auto& part : all) bytes += part.size();
    const std::size_t cache = p.ranks[0].where.properties().l2_bytes;
    for (std::uint32_t i = 0; i < p.here(); ++i)
      p.tell(number, i,
             {all[i].data(), shape.size_of(p.first() + i), element_bytes, bytes > cache ? 1u : 0u});
    *free = {shape, element_bytes, std::move(all)};
  } catch (...) {
    failed = std::current_exception();
  }
  // Nobody goes on before all have it.
  try {
    p.with.agree(collective::make_array, failed, p.soon());
  } catch (...) {
    if (!failed) p.forget(number);
    throw;
  }
  return number;
}

void world_core::parts::forget(std::uint32_t number) noexcept {
  try {
    for (std::uint32_t i = 0; i < here(); ++i) tell(number, i, {nullptr, 0, 0, 0});
  } catch (...) {  // the device is lost
  }
  if (keeps_arrays) kept.push_back(std::move(arrays[number]));
  arrays[number] = {};
}

void world_core::keep_arrays() {
  parts_->kept.reserve(most_arrays);
  parts_->keeps_arrays = true;
}

void world_core::remove_array(std::uint32_t number) noexcept {
  parts& p = *parts_;
  p.forget(number);
  // No kernel comes back before all have freed theirs: cudaFree would wait for it, where the other
  // world is in the same process.
  try {
    const auto hold = p.one_at_a_time();
    p.with.agree(collective::end_array, {}, p.soon());
  } catch (...) {  // the next collective operation says it
  }
}

const array_memory& world_core::parts::holds(std::uint32_t number, std::uint64_t first,
                                             std::uint64_t count) const {
  const array_memory& a = arrays[number];
  if (first > a.shape.size() || count > a.shape.size() - first)
    throw error(errc::invalid_option,
                fmt::format("array: {} elements from {} on were named; it has {}", count, first,
                            a.shape.size()));
  return a;
}

void world_core::write(std::uint32_t number, std::uint64_t first, const void* from,
                       std::uint64_t count) {
  const parts& p = *parts_;
  parts_->alike(collective::copy, [&] {
    const array_memory& a = p.holds(number, first, count);
    for (std::uint32_t i = 0; i < p.here(); ++i) {
      const std::uint32_t r = p.first() + i;
      const std::uint64_t n = a.shape.size_of(r), bytes = a.element_bytes;
      if (n == 0) continue;
      std::vector<unsigned char> part(n * bytes);
      const auto d = p.ranks[i].where;
      simt::copy_bytes(d, part.data(), a.parts[i].data(), part.size());
      for (std::uint64_t k = 0; k < n; ++k) {
        const std::uint64_t index = a.shape.index_of({r, k});
        if (index >= first && index - first < count)
          std::copy_n(static_cast<const unsigned char*>(from) + (index - first) * bytes, bytes,
                      part.data() + k * bytes);
      }
      simt::copy_bytes(d, a.parts[i].data(), part.data(), part.size());
    }
  });
}

void world_core::read(std::uint32_t number, std::uint64_t first, void* to,
                      std::uint64_t count) const {
  const parts& p = *parts_;
  std::vector<std::vector<unsigned char>> here(p.here());
  parts_->alike(collective::copy, [&] {
    const array_memory& a = p.holds(number, first, count);
    for (std::uint32_t i = 0; i < p.here(); ++i) {
      here[i].resize(a.shape.size_of(p.first() + i) * a.element_bytes);
      if (!here[i].empty())
        simt::copy_bytes(p.ranks[i].where, here[i].data(), a.parts[i].data(), here[i].size());
    }
  });
  const array_memory& a = p.arrays[number];
  const std::uint64_t bytes = a.element_bytes;
  auto hold = parts_->one_at_a_time();
  // Each process says what it has of so many elements at a time, in their order.
  constexpr std::uint64_t most = std::uint64_t{1} << 17;
  auto* const target = static_cast<unsigned char*>(to);
  for (std::uint64_t from = 0, n = 0; from < count || (from == 0 && p.others); from += n) {
    n = std::min(p.others ? most : count, count - from);
    std::string mine;
    for (std::uint64_t k = from; k < from + n; ++k) {
      const place where = a.shape.find(first + k);
      if (!p.all.is_here(where.rank)) continue;
      const unsigned char* element = here[where.rank - p.first()].data() + where.offset * bytes;
      std::copy_n(element, bytes, target + k * bytes);
      if (p.others) mine.append(reinterpret_cast<const char*>(element), bytes);
    }
    if (!p.others) break;
    const std::vector<said> found =
        parts_->with.gather(collective::copy, said().add(first).add(count).add(mine), p.soon());
    std::vector<std::size_t> at(found.size(), sizeof first + sizeof count);
    for (std::size_t q = 0; q < found.size(); ++q)
      if (found[q].rest().compare(0, at[q], found[p.all.process].rest(), 0, at[q]) != 0)
        throw error(errc::misuse,
                    fmt::format("array: process {} copies {} elements from {} on, and process {} "
                                "others; copy the same in all processes",
                                p.all.process, count, first, q));
    for (std::uint64_t k = from; k < from + n; ++k) {
      const std::uint32_t q = p.all.process_of(a.shape.find(first + k).rank);
      const std::string_view theirs = found[q].rest();
      if (at[q] + bytes <= theirs.size())
        theirs.copy(reinterpret_cast<char*>(target) + k * bytes, bytes, at[q]);
      at[q] += bytes;
    }
    if (n == 0) break;
  }
}

/// Copies between the host and a part: to one of `to` and `from`, the other is null.
void world_core::parts::part(std::uint32_t number, std::uint32_t rank, void* to, const void* from,
                             std::uint64_t count) const {
  const array_memory& a = arrays[number];
  if (count > a.shape.size_of(rank))
    throw error(errc::invalid_option,
                fmt::format("array: {} elements of the part of rank {} were named; it has {}",
                            count, rank, a.shape.size_of(rank)));
  unsigned char* const mine = a.parts[rank - first()].data();
  if (count != 0)
    simt::copy_bytes(ranks[rank - first()].where, to != nullptr ? to : mine,
                     to != nullptr ? mine : from, count * a.element_bytes);
}
void world_core::write_part(std::uint32_t number, std::uint32_t rank, const void* from,
                            std::uint64_t count) {
  check_rank(rank);
  parts_->part(number, rank, nullptr, from, count);
}
void world_core::read_part(std::uint32_t number, std::uint32_t rank, void* to,
                           std::uint64_t count) const {
  check_rank(rank);
  parts_->part(number, rank, to, nullptr, count);
}

}  // namespace grosr::net
