#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>

#include "net/world_parts.hpp"

namespace grosr::net {
namespace {

using simt::space;

constexpr std::uint32_t least_link = 8 * 1024, usual_link = 64 * 1024, most_link = 1024 * 1024,
                        most_ranks = 1024;

std::uint32_t is_far(const grosr::device& a, const grosr::device& b) { return a == b ? 0 : 1; }

void throw_if_too_many(std::size_t ranks) {
  if (ranks > most_ranks)
    throw error(errc::invalid_option,
                fmt::format("world: {} ranks were asked for; there may be {}", ranks, most_ranks));
}

/// Warps of the largest rank.
std::uint32_t most_warps(const std::vector<rank_options>& ranks) {
  constexpr std::uint32_t usual_blocks = 4, warps_of_block = 4;  // of worlds' kernels
  std::uint32_t most = 1;
  for (const rank_options& r : ranks) {
    if (!r.where.is_cuda()) continue;
    const std::uint32_t sms = r.runtime.sms != 0 ? r.runtime.sms : r.where.properties().sms,
                        blocks =
                            r.runtime.blocks_per_sm != 0 ? r.runtime.blocks_per_sm : usual_blocks;
    most = std::max(most, sms * blocks * warps_of_block);
  }
  return most;
}

/// Three times what so many warps have under way, 32 words each, on their links to all others.
std::uint32_t link_bytes_for(std::uint32_t warps, std::uint32_t ranks) {
  const std::uint64_t bytes =
      std::uint64_t{3} * warps * simt::warp_size * sizeof(simt::bus_word) / std::max(ranks - 1, 1u);
  return static_cast<std::uint32_t>(
      std::clamp(std::bit_floor(bytes), std::uint64_t{usual_link}, std::uint64_t{most_link}));
}

}  // namespace

void world_core::parts::check() const {
  if (ranks.empty())
    throw error(errc::invalid_option, "world: it was given no ranks; give it one or more");
  throw_if_too_many(ranks.size());
  if (options.link_bytes != 0 &&
      (!std::has_single_bit(options.link_bytes) || options.link_bytes < least_link ||
       options.link_bytes > most_link))
    throw error(errc::invalid_option,
                fmt::format("world: link_bytes is {}; give it a power of two from {} to {}, or 0",
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

/// Finds the other processes, and how many ranks they have.
void world_core::parts::join(const std::string& types) {
  const auto mine = static_cast<std::uint32_t>(ranks.size());
  if (options.processes == nullptr || options.processes->processes() == 1) {
    all.first = {0, mine};
    check();
    if (options.link_bytes == 0) options.link_bytes = link_bytes_for(most_warps(ranks), mine);
    return;
  }
  all.process = options.processes->process();
  others = options.processes->connect();
  with = collectives(others.get(), all.process);
  // Also where this process has been given what cannot be: the others are to know.
  std::exception_ptr wrong;
  try {
    check();
  } catch (...) {
    wrong = std::current_exception();
  }
  with.agree(collective::make, wrong, soon());
  compare(with.gather(collective::make,
                      said()
                          .add(mine)
                          .add(options.link_bytes)
                          .add(options.path)
                          .add(most_warps(ranks))
                          .add(types),
                      soon()),
          types);
}

void world_core::parts::compare(std::vector<said> found, const std::string& types) {
  const auto differ = [&](std::size_t p, const char* what, const auto& theirs, const auto& mine) {
    if (theirs != mine)
      throw error(errc::misuse,
                  fmt::format("world: process {} has {} {}, and process {} has {}; run the same "
                              "program in all processes, with the same options",
                              all.process, what, mine, p, theirs));
  };
  all.first = {0};
  std::uint32_t warps = 1;
  for (std::size_t p = 0; p < found.size(); ++p) {
    all.first.push_back(all.first.back() + found[p].take<std::uint32_t>());
    differ(p, "link_bytes", found[p].take<std::uint32_t>(), options.link_bytes);
    differ(p, "path", static_cast<int>(found[p].take<path>()), static_cast<int>(options.path));
    warps = std::max(warps, found[p].take<std::uint32_t>());
    differ(p, "the task types", found[p].rest(), types);
  }
  throw_if_too_many(size());
  if (options.link_bytes == 0) options.link_bytes = link_bytes_for(warps, size());
}

void world_core::parts::allocate() {
  const std::size_t links = std::size_t{size()} * link_classes,
                    links_here = std::size_t{here()} * link_classes,
                    words = options.link_bytes / sizeof(simt::bus_word),
                    chunks = words / chunk_words;
  std::vector<device> devices;
  for (const rank_options& r : ranks) {
    const auto d = devices.emplace_back(r.where);
    memory.push_back({{d, space::device, 1},
                      {d, space::device, links},
                      {d, space::device, links},
                      {d, space::device, links_here * chunks},
                      {d, space::device, links_here * chunks},
                      {d, space::device, links_here * words},
                      {d, space::device, link_classes * std::bit_ceil(here() * chunks)},
                      {d, space::device, most_arrays}});
  }
  reports = {devices.front(), space::pinned, here()};
  if (others) away.reset(new bridge(all, devices, static_cast<std::uint32_t>(words), *others));
}

link_sender world_core::parts::sender(std::uint32_t rank, std::uint32_t other,
                                      std::uint32_t by) const {
  const std::uint32_t words = options.link_bytes / sizeof(simt::bus_word),
                      chunks = words / chunk_words, n = here(), r = rank - first();
  link_sender o{};
  o.shift = std::bit_width(words) - 1u;
  o.from = rank;
  o.limit = words;
  if (!all.is_here(other)) {
    o.words = away->words_out(rank, other, by);
    o.freed = away->freed_out(rank, other, by);
    return o;
  }
  const std::uint32_t to = other - first();
  const rank_memory& theirs = memory[to];
  o.words = theirs.words.data() + (std::size_t{by} * n + r) * words;
  o.stored = memory[r].stored.data() + (std::size_t{by} * n + to) * chunks;
  o.arrives = &theirs.state.data()->arrived[by];
  o.freed = memory[r].freed.data() + (std::size_t{by} * n + to) * chunks;
  o.direct = options.path == path::automatic ? theirs.state.data() : nullptr;
  return o;
}

link_receiver world_core::parts::receiver(std::uint32_t rank, std::uint32_t other,
                                          std::uint32_t by) const {
  const std::uint32_t words = options.link_bytes / sizeof(simt::bus_word),
                      chunks = words / chunk_words, n = here(), r = rank - first();
  link_receiver i{};
  i.shift = std::bit_width(words) - 1u;
  i.from = other;
  if (!all.is_here(other)) {
    i.words = away->words_in(rank, other, by);
    i.freed = away->freed_in(rank, other, by);
    i.far = 1;
    return i;
  }
  const std::uint32_t from = other - first();
  i.words = memory[r].words.data() + (std::size_t{by} * n + from) * words;
  i.freed = memory[from].freed.data() + (std::size_t{by} * n + r) * chunks;
  i.far = is_far(ranks[r].where, ranks[from].where);
  return i;
}

void world_core::parts::connect() {
  const std::uint32_t n = size();
  std::vector<std::uint32_t*> doorbells;
  for (std::uint32_t i = 0; i < here(); ++i) {
    rank_memory& mine = memory[i];
    const std::uint32_t rank = first() + i;
    std::vector<link_sender> out;
    std::vector<link_receiver> in;
    for (std::uint32_t c = 0; c < link_classes; ++c)
      for (std::uint32_t other = 0; other < n; ++other) {
        out.push_back(sender(rank, other, c));
        in.push_back(receiver(rank, other, c));
      }
    mine.out.copy_from(out);
    mine.in.copy_from(in);
    rank_state s{};
    s.rank = rank;
    s.ranks = n;
    s.reaches = std::any_of(out.begin(), out.end(),
                            [](const link_sender& o) { return o.direct != nullptr; });
    s.buffer_words = buffer_words(n);
    s.flush_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(options.flush_after).count());
    s.out = mine.out.data();
    s.in = mine.in.data();
    s.arrays = mine.arrays.data();
    const std::size_t places = mine.arrived.size() / link_classes;
    for (std::uint32_t c = 0; c < link_classes; ++c) {
      s.arrived[c].near = mine.arrived.data() + c * places;
      s.arrived[c].near_shift = static_cast<std::uint32_t>(std::bit_width(places)) - 1;
      if (away) away->lead_to(rank, c, s.arrived[c]);
    }
    mine.state.copy_from(std::span<const rank_state>(&s, 1));
    doorbells.push_back(&mine.state.data()->doorbell);
  }
  if (away) away->start(std::move(doorbells));
}

world_core::world_core(std::vector<rank_options> ranks, const world_options& options,
                       const std::string& types)
    : parts_(new parts) {
  parts_->ranks = std::move(ranks);
  parts_->options = options;
  parts_->join(types);
  together([&] {
    parts_->check();
    parts_->allocate();
    parts_->connect();
  });
}
world_core::~world_core() = default;

std::uint32_t world_core::size() const { return parts_->size(); }
std::uint32_t world_core::first_here() const { return parts_->first(); }
std::uint32_t world_core::ranks_here() const { return parts_->here(); }
bool world_core::has_others() const { return bool{parts_->others}; }
const rank_options& world_core::rank(std::uint32_t r) const {
  return parts_->ranks[r - parts_->first()];
}
rank_state* world_core::state(std::uint32_t r) const {
  return parts_->memory[r - parts_->first()].state.data();
}

void world_core::check_rank(std::uint32_t r) const {
  if (r >= size())
    throw error(errc::invalid_option,
                fmt::format("world: rank {} was named; it has {}, from 0 on", r, size()));
  if (!parts_->all.is_here(r))
    throw error(
        errc::invalid_option,
        fmt::format("world: rank {} is in process {}; hand the task to it there, or send it "
                    "as a message",
                    r, parts_->all.process_of(r)));
}

void world_core::together(const std::function<void()>& what) {
  parts_->alike(collective::settle, what);
}

}  // namespace grosr::net
