// The host's side: what lies where, and the two phases.
#include "assembly.hpp"

#include <algorithm>
#include <optional>

#include "ranks/share_out.hpp"
#include "tasks.hpp"

namespace grosr::genome {
namespace {

using genome_world = net::world<count_reads, begin_stretches, begin_contig, walk, kmer_map::tasks>;

}  // namespace

struct assembly::state {
  const placement where;
  const kmer_size size;
  const std::uint64_t capacity;
  const std::uint64_t reads_each;
  const std::uint32_t stride;
  std::uint64_t room;  // pieces of a rank
  genome_world world;
  net::array<std::uint32_t> reads;
  std::optional<kmer_map> kmers;
  std::optional<net::array<std::uint64_t>> pieces;

  state(const placement& p, const read_set& r, kmer_size s, std::uint64_t c)
      : where(p),
        size(s),
        capacity(c),
        reads_each((r.size() + p.ranks - 1) / p.ranks),
        stride(r.stride),
        room(c / p.ranks / 8 + 256),
        world(ranks::ranks_of(p), {.link_bytes = p.link_bytes, .path = net::path::messages}),
        reads(world, reads_each * stride * p.ranks) {
    for (std::uint32_t rank = 0; rank < p.ranks; ++rank) {
      const std::size_t first = std::min<std::size_t>(rank * reads_each, r.size()),
                        last = std::min<std::size_t>(first + reads_each, r.size());
      reads.copy_part_from(rank, {r.of(first), r.of(last)});
    }
    make_pieces();
  }

  void make_pieces() {
    pieces.reset();
    pieces.emplace(world, (piece_header_words + room * piece_words) * where.ranks);
  }

  /// Hands each rank make(i, n) for i of n lanes that share `work`.
  template <class Make>
  void on_all_ranks(std::uint64_t work, const Make& make) {
    const std::uint64_t most = where.where.is_cuda() ? 65'536 / where.ranks : 64;
    const auto n = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(work, 1, most));
    ranks::on_all_ranks(world, n, [&](std::uint32_t i) { return make(i, n); });
  }

  std::vector<std::uint64_t> part_of(std::uint32_t rank, std::uint64_t words) const {
    std::vector<std::uint64_t> part(words);
    pieces->copy_part_to(rank, part);
    return part;
  }
};

assembly::assembly(const placement& p, const read_set& reads, kmer_size size,
                   std::uint64_t capacity)
    : state_(std::make_unique<state>(p, reads, size, capacity)) {}
assembly::~assembly() = default;

void assembly::begin() {
  state_->kmers.reset();
  state_->kmers.emplace(state_->world, state_->capacity);
}

void assembly::count() {
  state& s = *state_;
  s.on_all_ranks(s.reads_each, [&](std::uint32_t i, std::uint32_t n) {
    return count_reads{s.reads.ref(), s.kmers->ref(), static_cast<std::uint16_t>(s.size.k), i, n,
                       s.stride};
  });
}

bool assembly::walk() {
  state& s = *state_;
  const std::vector<std::uint64_t> header{0, s.room};
  for (std::uint32_t r = 0; r < s.where.ranks; ++r) s.pieces->copy_part_from(r, header);
  const graph_ref graph{s.kmers->ref(), static_cast<std::uint16_t>(s.pieces->ref().number()),
                        static_cast<std::uint16_t>(s.size.k)};
  s.on_all_ranks(s.kmers->room(), [&](std::uint32_t i, std::uint32_t n) {
    return begin_stretches{graph, i, n};
  });
  std::uint64_t most = 0;
  for (std::uint32_t r = 0; r < s.where.ranks; ++r) most = std::max(most, s.part_of(r, 1)[0]);
  if (most <= s.room) return true;
  s.room = most;
  s.make_pieces();
  return false;
}

kmer_table assembly::kmers() const {
  kmer_table all;
  for (const auto& e : state_->kmers->entries()) all.emplace(e.key, e.value);
  return all;
}

std::vector<std::string> assembly::contigs() const {
  const state& s = *state_;
  std::vector<piece> all;
  for (std::uint32_t r = 0; r < s.where.ranks; ++r) {
    const std::uint64_t n = s.part_of(r, 1)[0];
    const std::vector<std::uint64_t> part = s.part_of(r, piece_header_words + n * piece_words);
    const auto* const first = reinterpret_cast<const piece*>(part.data() + piece_header_words);
    all.insert(all.end(), first, first + n);
  }
  return joined(std::move(all), s.size);
}

std::vector<net::rank_stats> assembly::stats() const { return state_->world.stats(); }

}  // namespace grosr::genome
