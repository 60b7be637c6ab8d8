#include "grosr/net/detail/world_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <mutex>

namespace grosr::net {
namespace {

using simt::space;

constexpr std::uint32_t least_link = 8 * 1024, most_link = 1024 * 1024, most_ranks = 1024;
constexpr std::uint64_t most_part = std::uint64_t{1} << 40;

const char* name_of(std::uint32_t operation) {
  static constexpr const char* names[] = {"an operation", "put",     "add",    "min",
                                          "max",          "bit_and", "bit_or", "get"};
  if (operation >= operation::task) return "send or call";
  return names[operation / 4 % 8];
}

std::uint32_t is_far(const grosr::device& a, const grosr::device& b) { return a == b ? 0 : 1; }

template <class T>
std::vector<T> copy_of(const simt::buffer<T>& b) {
  std::vector<T> all(b.size());
  b.copy_to(all);
  return all;
}

}  // namespace

/// Memory of one rank.
struct rank_memory {
  simt::buffer<rank_state> state;
  simt::buffer<link_sender> out;
  simt::buffer<link_receiver> in;
  simt::buffer<std::uint64_t> freed;   // of `out`
  simt::buffer<simt::bus_word> words;  // of `in`
  simt::buffer<array_part> arrays;

  std::size_t bytes() const {
    return state.bytes() + out.bytes() + in.bytes() + freed.bytes() + words.bytes() +
           arrays.bytes();
  }
};

struct array_memory {
  layout shape;
  std::uint32_t element_bytes = 0;  // 0: there is none of this number
  std::vector<simt::buffer<unsigned char>> parts;
};

struct world_core::parts {
  std::vector<rank_options> ranks;
  world_options options;
  std::vector<rank_memory> memory;
  std::vector<array_memory> arrays;
  std::mutex told_lock;
  std::uint64_t refused_told = 0;

  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks.size()); }
  void check() const;
  void allocate();
  void connect();
  void tell(std::uint32_t number, std::uint32_t rank, const array_part& part);
  template <class Copy>
  void each_run(std::uint32_t number, std::uint64_t first, std::uint64_t count, Copy&& copy) const;
};

void world_core::parts::check() const {
  if (ranks.empty())
    throw error(errc::invalid_option, "world: it was given no ranks; give it one or more");
  if (ranks.size() > most_ranks)
    throw error(errc::invalid_option, fmt::format("world: {} ranks were asked for; there may be {}",
                                                  ranks.size(), most_ranks));
  if (!std::has_single_bit(options.link_bytes) || options.link_bytes < least_link ||
      options.link_bytes > most_link)
    throw error(errc::invalid_option,
                fmt::format("world: link_bytes is {}; give it a power of two from {} to {}",
                            options.link_bytes, least_link, most_link));
  for (const rank_options& r : ranks) {
    const grosr::device &a = ranks.front().where, &b = r.where;
    if (a.kind() != b.kind() || (a.is_cuda() && a != b))
      throw error(errc::invalid_option,
                  fmt::format("world: ranks were asked for on {} and on {}; put all of them on one "
                              "GPU, or all on host:N",
                              a.name(), b.name()));
  }
}

void world_core::parts::allocate() {
  const std::size_t links = std::size_t{size()} * link_classes,
                    words = options.link_bytes / sizeof(simt::bus_word);
  for (const rank_options& r : ranks) {
    const auto d = r.where;
    memory.push_back({{d, space::device, 1},
                      {d, space::device, links},
                      {d, space::device, links},
                      {d, space::device, links * (words / chunk_words)},
                      {d, space::device, links * words},
                      {d, space::device, most_arrays}});
  }
}

void world_core::parts::connect() {
  const std::uint32_t n = size(), words = options.link_bytes / sizeof(simt::bus_word),
                      chunks = words / chunk_words, shift = std::bit_width(words) - 1u;
  const bool direct = options.path == path::automatic;
  for (std::uint32_t r = 0; r < n; ++r) {
    rank_memory& mine = memory[r];
    std::vector<link_sender> out(std::size_t{n} * link_classes);
    std::vector<link_receiver> in(out.size());
    for (std::uint32_t c = 0; c < link_classes; ++c)
      for (std::uint32_t other = 0; other < n; ++other) {
        rank_memory& theirs = memory[other];
        const std::size_t here = std::size_t{c} * n + other, there = std::size_t{c} * n + r;
        link_sender& o = out[here];
        o = {};
        o.words = theirs.words.data() + there * words;
        o.shift = shift;
        o.to = other;
        o.far = is_far(ranks[r].where, ranks[other].where);
        o.doorbell = &theirs.state.data()->doorbell;
        o.freed = mine.freed.data() + here * chunks;
        o.direct = direct ? theirs.state.data() : nullptr;
        o.limit = words;
        link_receiver& i = in[here];
        i = {};
        i.words = mine.words.data() + here * words;
        i.shift = shift;
        i.from = other;
        i.far = is_far(ranks[r].where, ranks[other].where);
        i.freed = theirs.freed.data() + there * chunks;
      }
    mine.out.copy_from(out);
    mine.in.copy_from(in);
    rank_state s{};
    s.rank = r;
    s.ranks = n;
    s.flush_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(options.flush_after).count());
    s.out = mine.out.data();
    s.in = mine.in.data();
    s.arrays = mine.arrays.data();
    mine.state.copy_from(std::span<const rank_state>(&s, 1));
  }
}

world_core::world_core(std::vector<rank_options> ranks, const world_options& options)
    : parts_(new parts) {
  parts_->ranks = std::move(ranks);
  parts_->options = options;
  parts_->check();
  parts_->allocate();
  parts_->connect();
}
world_core::~world_core() = default;

std::uint32_t world_core::size() const { return parts_->size(); }
const rank_options& world_core::rank(std::uint32_t r) const { return parts_->ranks[r]; }
rank_state* world_core::state(std::uint32_t r) const { return parts_->memory[r].state.data(); }

void world_core::check_rank(std::uint32_t r) const {
  if (r >= size())
    throw error(errc::invalid_option,
                fmt::format("world: rank {} was named; it has {}, from 0 on", r, size()));
}

// ---- arrays ----

void world_core::parts::tell(std::uint32_t number, std::uint32_t rank, const array_part& part) {
  simt::copy_bytes(ranks[rank].where, memory[rank].arrays.data() + number, &part, sizeof part);
}

std::uint32_t world_core::add_array(const layout& shape, std::uint32_t element_bytes) {
  parts& p = *parts_;
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
  const auto number = static_cast<std::uint32_t>(free - p.arrays.begin());
  std::vector<simt::buffer<unsigned char>> all;
  for (std::uint32_t r = 0; r < p.size(); ++r)
    all.emplace_back(p.ranks[r].where, space::device, shape.size_of(r) * element_bytes);
  for (std::uint32_t r = 0; r < p.size(); ++r)
    p.tell(number, r, {all[r].data(), shape.size_of(r), element_bytes, 0});
  *free = {shape, element_bytes, std::move(all)};
  return number;
}

void world_core::remove_array(std::uint32_t number) noexcept {
  parts& p = *parts_;
  try {
    for (std::uint32_t r = 0; r < p.size(); ++r) p.tell(number, r, {nullptr, 0, 0, 0});
  } catch (...) {  // the device is lost
  }
  p.arrays[number] = {};
}

/// copy(bytes of the array's part on a rank, its device, index of the first element, how many):
/// for parts that lie together, one call each.
template <class Copy>
void world_core::parts::each_run(std::uint32_t number, std::uint64_t first, std::uint64_t count,
                                 Copy&& copy) const {
  const array_memory& a = arrays[number];
  if (first > a.shape.size() || count > a.shape.size() - first)
    throw error(errc::invalid_option,
                fmt::format("array: {} elements from {} on were named; it has {}", count, first,
                            a.shape.size()));
  for (std::uint32_t r = 0; r < size(); ++r) copy(a, r);
}

void world_core::write(std::uint32_t number, std::uint64_t first, const void* from,
                       std::uint64_t count) {
  parts_->each_run(number, first, count, [&](const array_memory& a, std::uint32_t r) {
    const std::uint64_t n = a.shape.size_of(r), bytes = a.element_bytes;
    if (n == 0) return;
    std::vector<unsigned char> part(n * bytes);
    const auto d = parts_->ranks[r].where;
    simt::copy_bytes(d, part.data(), a.parts[r].data(), part.size());
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t index = a.shape.index_of({r, i});
      if (index >= first && index - first < count)
        std::copy_n(static_cast<const unsigned char*>(from) + (index - first) * bytes, bytes,
                    part.data() + i * bytes);
    }
    simt::copy_bytes(d, a.parts[r].data(), part.data(), part.size());
  });
}

void world_core::read(std::uint32_t number, std::uint64_t first, void* to,
                      std::uint64_t count) const {
  parts_->each_run(number, first, count, [&](const array_memory& a, std::uint32_t r) {
    const std::uint64_t n = a.shape.size_of(r), bytes = a.element_bytes;
    if (n == 0) return;
    std::vector<unsigned char> part(n * bytes);
    simt::copy_bytes(parts_->ranks[r].where, part.data(), a.parts[r].data(), part.size());
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t index = a.shape.index_of({r, i});
      if (index >= first && index - first < count)
        std::copy_n(part.data() + i * bytes, bytes,
                    static_cast<unsigned char*>(to) + (index - first) * bytes);
    }
  });
}

// ---- when all is done ----

void world_core::ring_all() {
  const std::uint32_t rung = 1;
  for (std::uint32_t r = 0; r < size(); ++r)
    simt::copy_bytes(rank(r).where, &state(r)->doorbell, &rung, sizeof rung);
}

std::vector<rank_stats> world_core::stats() const {
  std::vector<rank_stats> all(size());
  const std::uint64_t chunks = parts_->options.link_bytes / sizeof(simt::bus_word) / chunk_words;
  for (std::uint32_t r = 0; r < size(); ++r) {
    const rank_memory& m = parts_->memory[r];
    // What was given back first: no more than was sent by then.
    const std::vector<std::uint64_t> freed = copy_of(m.freed);
    for (std::size_t i = 0; i < freed.size(); ++i)
      all[r].words_received += chunks_freed(freed[i], i % chunks, chunks) * chunk_words;
    for (const link_sender& o : copy_of(m.out)) all[r].words_sent += o.tail;
    all[r].deferred = copy_of(m.state).front().deferred;
    all[r].memory = m.bytes();
  }
  return all;
}

bool world_core::wait_all(const std::function<bool(std::uint32_t, run::deadline)>& rests,
                          run::deadline until) const {
  // Sums over all ranks, counted twice: F. Mattern, "Algorithms for distributed termination
  // detection", Distributed Computing 2, 1987 (the four-counter method).
  std::uint64_t received_before = ~std::uint64_t{0};
  for (;;) {
    for (std::uint32_t r = 0; r < size(); ++r)
      if (!rests(r, until)) return false;
    std::uint64_t sent = 0, received = 0;
    for (const rank_stats& s : stats()) {
      sent += s.words_sent;
      received += s.words_received;
    }
    if (sent == received_before) return true;
    received_before = received;
    if (until && std::chrono::steady_clock::now() >= *until) return false;
  }
}

void world_core::throw_if_refused() {
  std::uint64_t count = 0;
  refusals first{};
  std::uint32_t rank = 0;
  for (std::uint32_t r = 0; r < size(); ++r) {
    const refusals found = copy_of(parts_->memory[r].state).front().refused;
    if (count == 0 && found.count != 0) {
      first = found;
      rank = r;
    }
    count += found.count;
  }
  {
    const std::lock_guard hold(parts_->told_lock);
    if (count == parts_->refused_told) return;
    count -= std::exchange(parts_->refused_told, count);
  }
  const char* what = name_of(first.operation & 0xff);
  if (first.operation >= refused_rank)
    throw error(errc::misuse,
                fmt::format("world: {} operations were refused; rank {} asked for a {} to rank {}, "
                            "and there are {} ranks",
                            count, rank, what, first.index, size()));
  throw error(errc::misuse,
              fmt::format("world: {} operations were refused; rank {} asked for a {} of element {} "
                          "of array {}, which has no such element, or is gone",
                          count, rank, what, first.index, first.array));
}

}  // namespace grosr::net
