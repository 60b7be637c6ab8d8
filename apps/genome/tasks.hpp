// Tasks: k-mers of reads are counted in a map; k-mers with one extension on each side are followed
// from rank to rank: contigs, in stretches that begin at their ends and at anchors, all at once.
#pragma once

#include "grosr/net/map.hpp"
#include "kmer.hpp"
#include "pieces.hpp"
#include "ranks/tasks.hpp"

namespace grosr::genome {

/// A k-mer was seen once more.
struct see_kmer {
  extensions beside;
  GROSR_DEVICE void operator()(kmer_seen& s) const {
    ++s.count;
    s.beside.bits |= beside.bits;
  }
};
using kmer_map = net::map<kmer_seen, see_kmer>;
using kmer_ref = net::map_ref<kmer_seen, see_kmer>;

/// Every `step`th of this rank's reads, as read_set has them.
struct count_reads {
  net::array_ref<std::uint32_t> reads;
  kmer_ref kmers;
  std::uint16_t k;
  std::uint32_t first, step, stride;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    const std::uint64_t words = reads.size_of(world.rank());
    const std::uint32_t* const all = world.local(reads);
    GROSR_NO_UNROLL
    for (std::uint64_t r = first; (r + 1) * stride <= words; r += step)
      count(world, all + r * stride);
  }

 private:
  GROSR_DEVICE void count(const auto& world, const std::uint32_t* read) const {
    const kmer_size size{k};
    const std::uint32_t n = read[0];
    std::uint64_t x = 0, reverse = 0;
    GROSR_NO_UNROLL
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t base = base_of(read, i), before = size.first_of(x);
      x = size.append(x, base);
      reverse = size.prepend(reverse, 3 - base);
      if (i + 1 < k) continue;
      extensions beside;
      if (i + 1 > k) beside.bits |= extensions::left(before).bits;
      if (i + 1 < n) beside.bits |= extensions::right(base_of(read, i + 1)).bits;
      const canonical_kmer c(x, reverse);
      kmers.update(world, c.kmer, see_kmer{c.seen_from(beside)});
    }
  }
  GROSR_DEVICE static std::uint32_t base_of(const std::uint32_t* read, std::uint32_t i) {
    return read[1 + i / 16] >> 2 * (i % 16) & 3;
  }
};

/// A rank's part begins with how many pieces there are, and how many there is room for.
struct piece_header {
  std::uint64_t count, room;
};
inline constexpr std::uint32_t piece_words = sizeof(piece) / 8, piece_header_words = 2;

GROSR_DEVICE void keep(const auto& world, std::uint32_t pieces, const piece& p) {
  std::uint64_t* const mine = world.local(ranks::numbered_words(pieces));
  auto* const header = reinterpret_cast<piece_header*>(mine);
  const std::uint64_t at = ranks::shared(header->count).fetch_add(1, simt::relaxed);
  if (at < header->room) reinterpret_cast<piece*>(mine + piece_header_words)[at] = p;
}

/// What all tasks of contigs have.
struct graph_ref {
  kmer_ref kmers;
  std::uint16_t pieces;  ///< number of the array
  std::uint16_t k;

  GROSR_DEVICE kmer_size size() const { return {k}; }
  GROSR_DEVICE canonical_kmer named(std::uint64_t x) const { return {size(), x}; }
  /// One of 32, either way round.
  GROSR_DEVICE bool is_anchor(std::uint64_t x) const {
    return named(x).kmer * 0x9e3779b97f4a7c15u >> 59 == 0;
  }
  GROSR_DEVICE std::uint32_t rank_of(const auto& world, std::uint64_t x) const {
    return kmers.rank_of(world, named(x).kmer);
  }
  /// What is beside a k-mer of this rank.
  GROSR_DEVICE extensions beside(const auto& world, std::uint64_t x) const {
    const canonical_kmer c = named(x);
    kmer_seen seen{};
    kmers.find_here(world, c.kmer, seen);
    return c.seen_from(seen.beside);
  }
};

/// Goes on along a stretch, on the rank of the k-mer after `at`.
struct walk {
  std::uint64_t first, at;  ///< k-mers as they are read
  std::uint64_t bases;      ///< the last ones that were walked, not more than 32
  std::uint32_t walked;
  graph_ref graph;
  std::uint16_t base;  ///< after `at`
  GROSR_DEVICE void operator()(auto& context) const {
    constexpr unsigned most_steps = 64;
    const auto world = net::world_of(context);
    walk w = *this;
    GROSR_NO_UNROLL
    for (unsigned step = 0; step < most_steps; ++step) {
      const std::uint64_t next = graph.size().append(w.at, w.base);
      const extensions beside = graph.beside(world, next);
      if (!beside.unique()) return w.keep_bases(world, piece_kind::end);
      if (w.walked != 0 && w.walked % 32 == 0) w.keep_bases(world, piece_kind::bases);
      w.at = next;
      w.bases = w.bases << 2 | w.base;
      ++w.walked;
      if (graph.is_anchor(next)) return w.keep_bases(world, piece_kind::anchor);
      w.base = static_cast<std::uint16_t>(beside.right_base());
      const std::uint32_t to = graph.rank_of(world, graph.size().append(w.at, w.base));
      if (to != world.rank()) return world.send(to, w);
    }
    context.spawn(w);
  }
  /// Begins a stretch.
  GROSR_DEVICE static void from(const auto& world, const graph_ref& graph, std::uint64_t first,
                                std::uint32_t base) {
    world.send(graph.rank_of(world, graph.size().append(first, base)),
               walk{first, first, 0, 0, graph, static_cast<std::uint16_t>(base)});
  }

 private:
  GROSR_DEVICE void keep_bases(const auto& world, piece_kind kind) const {
    keep(world, graph.pieces, {first, bases, walked, kind});
  }
};

/// On the rank of the k-mer to the left of `first`, which has one extension on each side: a contig
/// begins there if the k-mer to the left has not.
struct begin_contig {
  std::uint64_t first;
  graph_ref graph;
  std::uint8_t left, right;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    if (graph.beside(world, graph.size().prepend(first, left)).unique()) return;
    keep(world, graph.pieces, {first, 0, 0, piece_kind::begin});
    if (!graph.is_anchor(first)) walk::from(world, graph, first, right);
  }
};

/// Looks for ends of contigs and anchors in every `step`th slot of this rank's part of the map.
struct begin_stretches {
  graph_ref graph;
  std::uint32_t first, step;
  GROSR_DEVICE void operator()(auto& context) const {
    const auto world = net::world_of(context);
    graph.kmers.each_here(world, first, step, [&](std::uint64_t kmer, const kmer_seen& seen) {
      if (!seen.beside.unique()) return;
      ask(world, kmer, seen.beside);
      ask(world, graph.size().reverse_complement(kmer), seen.beside.reversed());
    });
  }

 private:
  GROSR_DEVICE void ask(const auto& world, std::uint64_t x, extensions beside) const {
    const std::uint32_t left = beside.left_base(), right = beside.right_base();
    world.send(
        graph.rank_of(world, graph.size().prepend(x, left)),
        begin_contig{x, graph, static_cast<std::uint8_t>(left), static_cast<std::uint8_t>(right)});
    if (graph.is_anchor(x)) walk::from(world, graph, x, right);
  }
};

}  // namespace grosr::genome
