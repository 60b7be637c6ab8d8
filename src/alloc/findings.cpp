// What a checked heap tells: findings and leaks.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "alloc/memory.hpp"
#include "grosr/simt/buffer.hpp"

namespace grosr {

using namespace alloc;

std::string heap_finding::text() const {
  const char* const what_text[] = {"freed twice", "freed, but no block of this heap",
                                   "written past its end", "never freed"};
  std::string t = fmt::format("{:#x}: {}", address, what_text[static_cast<int>(what)]);
  if (bytes != 0) t += fmt::format(", {} bytes", bytes);
  if (block_bytes != 0) t += fmt::format(" in a block of {}", block_bytes);
  if (!allocated_by.empty()) t += "; allocated by " + allocated_by;
  if (!freed_by.empty()) t += "; first freed by " + freed_by;
  if (!found_by.empty()) t += "; found in " + found_by;
  return t;
}

std::vector<heap_finding> heap::findings() const {
  std::vector<heap_finding> all;
  const heap_view& v = own().view;
  if (v.found == nullptr) return all;
  fault_list list{};
  simt::copy_bytes(own().where, &list, v.found, sizeof list);
  for (std::uint32_t i = 0; i < std::min(list.count, faults_kept); ++i) {
    const fault_record& f = list.records[i];
    if (f.serial != i + 1) continue;  // being written
    heap_finding h;
    h.what = heap_finding::kind{f.kind};
    h.address = f.address;
    h.bytes = f.bytes;
    h.block_bytes = f.size_class < slot_classes ? slot_bytes(f.size_class) : 0;
    h.allocated_by = own().name(f.owner);
    if (h.what == heap_finding::kind::double_free) h.freed_by = own().name(f.freed_by);
    h.found_by = own().name(f.by);
    all.push_back(std::move(h));
  }
  return all;
}

std::vector<heap_finding> heap::leaks(std::size_t most) const {
  std::vector<heap_finding> all;
  const heap_view& v = own().view;
  if (v.found == nullptr) return all;
  const auto copy = [&](void* to, const void* from, std::size_t n) {
    simt::copy_bytes(own().where, to, from, n);
  };
  std::vector<std::uint64_t> states(v.count);
  copy(states.data(), v.states, states.size() * sizeof states[0]);
  std::vector<unsigned char> slab(slab_bytes);
  std::uint32_t bits[words_a_slab];
  const auto add = [&](unsigned char* at, std::size_t block_bytes, const block_record& r) {
    heap_finding h;
    h.what = heap_finding::kind::leak;
    h.address = reinterpret_cast<std::uint64_t>(at);
    h.bytes = r.bytes;
    h.block_bytes = block_bytes;
    h.allocated_by = own().name(r.owner);
    all.push_back(std::move(h));
  };
  for (std::uint32_t i = 0; i < v.count && all.size() < most; ++i) {
    if (!state::is_alive(states[i])) continue;
    const std::uint32_t c = state::class_in(states[i]);
    if (c >= classes) continue;
    block_record r{};
    if (c == run_class) {
      std::uint32_t length = 0;
      copy(&length, &v.run_lengths[i], sizeof length);
      copy(&r, v.address(i + length, 0) - sizeof r, sizeof r);
      add(v.address(i, 0), 0, r);
      continue;
    }
    copy(bits, &v.bits[std::size_t{i} * words_a_slab], sizeof bits);
    if (std::all_of(std::begin(bits), std::end(bits), [](std::uint32_t w) { return w == 0; }))
      continue;
    copy(slab.data(), v.address(i, 0), slab.size());
    for (std::uint32_t k = 0; k < slots_of(c) && all.size() < most; ++k) {
      if ((bits[k / 32] >> (k % 32) & 1) == 0) continue;
      std::memcpy(&r, slab.data() + (std::size_t{k} + 1) * slot_bytes(c) - sizeof r, sizeof r);
      add(v.address(i, k * slot_bytes(c)), slot_bytes(c), r);
    }
  }
  return all;
}

}  // namespace grosr
