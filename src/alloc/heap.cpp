// A heap's making, its refs and its report.
#include "grosr/alloc/heap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "alloc/memory.hpp"
#include "grosr/alloc/lifetime.hpp"
#include "grosr/simt/launch.hpp"

namespace grosr {
namespace {

using namespace alloc;

// Parts of one allocation, each on a line of its own.
class carver {
 public:
  template <class T>
  std::size_t add(std::size_t count) {
    const std::size_t at = bytes_;
    bytes_ = (bytes_ + count * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

void check_names(std::size_t names) {   // the first is nobody's
  constexpr std::size_t most = 65'535;  // records keep 16 bits
  if (names > most + 1)
    throw error(errc::invalid_option,
                fmt::format("{} names of owners in a checked heap; at most {}", names - 1, most));
}

std::uint32_t slabs_for(const device& d, std::size_t bytes) {
  if (bytes < slab_bytes)
    throw error(
        errc::invalid_option,
        fmt::format("a heap of {} bytes was asked for on {}; the least is one slab, {} bytes",
                    bytes, d.name(), slab_bytes));
  const device_properties p = d.properties();
  const std::size_t slabs = (bytes - 1) / slab_bytes + 1;
  const std::size_t most = std::min(p.memory, std::size_t{active_word::max_slabs} * slab_bytes);
  if (bytes > most)
    throw error(errc::out_of_memory,
                fmt::format("a heap of {} bytes ({}) was asked for on {}, which has {} bytes of "
                            "memory; ask for at most {}",
                            bytes, simt::in_units(bytes), d.name(), p.memory, most));
  return static_cast<std::uint32_t>(slabs);
}

}  // namespace

heap::memory::memory(device d, std::size_t bytes, const heap_options& o) : where(d), calls(d) {
  const std::uint32_t n = slabs_for(d, bytes);
  // Up to half of the slabs may be active; SMs share them where that is little.
  const device_properties p = d.properties();
  view.count = n;
  view.sm_cache_count = p.sms;
  view.most_ways = max_ways;
  const auto active_slabs = [&] {
    std::size_t held = 0;
    for (std::uint32_t c = 0; c < slot_classes; ++c) held += view.ways(slots_of(c));
    return held * view.sm_cache_count;
  };
  while (active_slabs() > n / 2 && view.most_ways > 1) view.most_ways /= 2;
  while (active_slabs() > n / 2 && view.sm_cache_count > 1)
    view.sm_cache_count = (view.sm_cache_count + 1) / 2;
  view.set_words = slab_set::words_of(n);
  // Two rounds of them are half of the heap at most: runs find room behind them.
  view.home_words = 1;
  while (view.home_words < 8 && view.sm_cache_count * view.home_words * 8 <= slab_set::leaves_of(n))
    view.home_words *= 2;

  carver c;
  const std::size_t active_count = std::size_t{slot_classes} * view.sm_cache_count * max_ways;
  const std::size_t states = c.add<std::uint64_t>((n + heap_view::states_multiple - 1) /
                                                  heap_view::states_multiple *
                                                  heap_view::states_multiple),
                    bits = c.add<std::uint32_t>(std::size_t{n} * words_a_slab),
                    lengths = c.add<std::uint32_t>(n),
                    sets = c.add<std::uint64_t>(std::size_t{heap_view::set_count} * view.set_words +
                                                slab_set::leaves_of(n)),
                    actives = c.add<std::uint32_t>(active_count),
                    sm_caches = c.add<sm_cache>(view.sm_cache_count),
                    words = c.add<shared_words>(1), faults = c.add<fault_counts>(1),
                    found = c.add<fault_list>(o.checked ? 1 : 0);
  metadata = simt::buffer<unsigned char>(d, simt::space::device, c.bytes());
  // A slab more, for the alignment.
  slabs = simt::buffer<unsigned char>(d, simt::space::device, (std::size_t{n} + 1) * slab_bytes);
  unsigned char* m = metadata.data();
  view.slabs = reinterpret_cast<unsigned char*>(
      (reinterpret_cast<std::uintptr_t>(slabs.data()) + slab_bytes - 1) / slab_bytes * slab_bytes);
  view.states = reinterpret_cast<std::uint64_t*>(m + states);
  view.bits = reinterpret_cast<std::uint32_t*>(m + bits);
  view.run_lengths = reinterpret_cast<std::uint32_t*>(m + lengths);
  view.sets = reinterpret_cast<std::uint64_t*>(m + sets);
  view.actives = reinterpret_cast<std::uint32_t*>(m + actives);
  view.sm_caches = reinterpret_cast<sm_cache*>(m + sm_caches);
  view.words = reinterpret_cast<shared_words*>(m + words);
  view.faults = reinterpret_cast<fault_counts*>(m + faults);

  if (o.checked) view.found = reinterpret_cast<fault_list*>(m + found);

  // All slabs are in the pool.
  std::vector<std::uint64_t> set(view.set_words);
  std::size_t level = 0;
  for (std::size_t ones = n, depth = 0; depth < 3; ++depth) {
    for (std::size_t i = 0; i < ones; ++i) set[level + i / 64] |= std::uint64_t{1} << (i % 64);
    ones = (ones + 63) / 64;
    level += ones;
  }
  simt::copy_bytes(d, view.sets, set.data(), set.size() * sizeof set[0]);
  std::vector<sm_cache> all(view.sm_cache_count);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].pool_leaf = static_cast<std::uint32_t>(i % slab_set::leaves_of(n));
    std::fill(std::begin(all[i].partial_leaf), std::end(all[i].partial_leaf), slab_set::none);
  }
  simt::copy_bytes(d, view.sm_caches, all.data(), all.size() * sizeof all[0]);
}

heap::memory::~memory() { simt::wait_for_kernels(where); }

heap::heap(device d, std::size_t bytes, const heap_options& options) try
    : share_(new share{std::make_shared<memory>(d, bytes, options)}) {
} catch (...) {
  rethrow_as_error("a heap of " + simt::in_units(bytes) + " was asked for");
}
heap::heap(heap&&) noexcept = default;
heap& heap::operator=(heap&&) noexcept = default;
heap::~heap() = default;

heap::memory& heap::own() const {
  if (!share_)
    throw error(errc::misuse, "this heap was moved from; use the one that it was moved to");
  return *share_->memory;
}

heap_ref heap::ref() const {
  if (own().view.found != nullptr)
    throw error(errc::misuse, "ref() of a checked heap; pass checked_ref(\"name\") to kernels");
  return heap_ref(own().view);
}

checked_heap_ref heap::checked_ref(const std::string& who) const {
  if (own().view.found == nullptr)
    throw error(errc::misuse,
                "checked_ref() of a heap that is not checked; make it with {.checked = true}");
  heap_view v = own().view;
  std::lock_guard lock(own().names_lock);
  auto& names = own().names;
  const auto at = std::find(names.begin() + 1, names.end(), who);
  if (at == names.end()) check_names(names.size() + 1);
  v.owner = static_cast<std::uint32_t>(at - names.begin());
  if (at == names.end()) names.push_back(who);
  return checked_heap_ref(v);
}

alloc::heap_view heap::view(const std::vector<std::string>& owners) const {
  heap_view v = own().view;
  if (v.found == nullptr) return v;
  std::lock_guard lock(own().names_lock);
  auto& names = own().names;
  const auto at = std::search(names.begin() + 1, names.end(), owners.begin(), owners.end());
  v.owner = static_cast<std::uint32_t>(at - names.begin());
  if (at == names.end()) {
    check_names(names.size() + owners.size());
    names.insert(names.end(), owners.begin(), owners.end());
  }
  return v;
}

struct alloc::heap_lifetime {
  static std::shared_ptr<const void> of(const heap& h) { return h.own(), h.share_->memory; }
};
std::shared_ptr<const void> alloc::lifetime_of(const heap& h) { return heap_lifetime::of(h); }

std::string heap::memory::name(std::uint16_t owner) {
  std::lock_guard lock(names_lock);
  return owner < names.size() ? names[owner] : "";
}

std::size_t heap::bytes() const { return std::size_t{own().view.count} * slab_bytes; }
const device& heap::where() const { return own().where; }

heap_report heap::report() const {
  const heap_view& v = own().view;
  std::vector<std::uint64_t> states(v.count), pool(slab_set::leaves_of(v.count)),
      in_runs(pool.size());
  std::vector<std::uint32_t> lengths(v.count);
  fault_counts faults{};
  const auto copy = [&](void* to, const void* from, std::size_t n) {
    simt::copy_bytes(own().where, to, from, n);
  };
  copy(states.data(), v.states, states.size() * sizeof states[0]);
  copy(pool.data(), v.sets, pool.size() * sizeof pool[0]);
  copy(in_runs.data(), v.ever_in_runs(), in_runs.size() * sizeof in_runs[0]);
  copy(lengths.data(), v.run_lengths, lengths.size() * sizeof lengths[0]);
  copy(&faults, v.faults, sizeof faults);

  heap_report r;
  r.bytes = bytes();
  r.metadata = own().metadata.bytes() + slab_bytes;
  r.classes.resize(classes);
  for (std::uint32_t c = 0; c < classes; ++c) {
    r.classes[c].block_bytes = c < slot_classes ? slot_bytes(c) : 0;
    r.classes[c].failures = faults.failures[c];
    r.failures += faults.failures[c];
  }
  for (std::uint32_t i = 0; i < v.count; ++i) {
    const std::uint64_t s = states[i];
    if (!state::is_alive(s) || state::class_in(s) >= classes) continue;
    heap_class_report& c = r.classes[state::class_in(s)];
    const bool run = state::class_in(s) == run_class;
    const std::uint64_t n = run ? 1 : std::min(state::count(s), slots_of(state::class_in(s)));
    c.slabs += run ? lengths[i] : 1;
    c.live += n;
    c.live_bytes += run ? std::size_t{lengths[i]} * slab_bytes : n * c.block_bytes;
  }
  for (const heap_class_report& c : r.classes) {
    r.live += c.live;
    r.live_bytes += c.live_bytes;
  }
  std::size_t run = 0, longest = 0, free = 0;
  for (std::uint32_t i = 0; i < v.count; ++i) {
    const bool in = pool[i / 64] >> (i % 64) & 1;
    free += in;
    run = in ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  std::size_t used = 0;
  for (std::uint32_t i = 0; i < v.count; ++i)
    used += states[i] != 0 || (in_runs[i / 64] >> (i % 64) & 1) != 0;
  r.high_water = used * slab_bytes;
  r.free_bytes = free * slab_bytes;
  r.largest_free = longest * slab_bytes;
  r.bad_alignments = faults.bad_alignment;
  r.foreign_frees = faults.foreign;
  r.double_frees = faults.double_frees;
  r.overruns = faults.overruns;
  return r;
}

}  // namespace grosr
