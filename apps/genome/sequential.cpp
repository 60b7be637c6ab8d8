#include "sequential.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

namespace grosr::genome {
namespace {

std::uint64_t kmer_of(const char* bases, kmer_size size) {
  std::uint64_t x = 0;
  for (std::uint32_t i = 0; i < size.k; ++i) x = x << 2 | code_of(bases[i]);
  return x;
}

/// A k-mer as it is read along a path, and what is beside it there.
struct on_path {
  std::uint64_t kmer;
  extensions beside;
};

/// The graph of the k-mers that have one extension on each side.
class unique_kmers {
 public:
  unique_kmers(const kmer_table& all, kmer_size size) : all_(all), size_(size) {}

  bool find(std::uint64_t x, on_path& to) const {
    const canonical_kmer c(size_, x);
    const auto at = all_.find(c.kmer);
    if (at == all_.end()) return false;
    to = {x, c.seen_from(at->second.beside)};
    return to.beside.unique();
  }
  bool right_of(const on_path& x, on_path& to) const {
    return find(size_.append(x.kmer, x.beside.right_base()), to);
  }
  bool left_of(const on_path& x, on_path& to) const {
    return find(size_.prepend(x.kmer, x.beside.left_base()), to);
  }

 private:
  const kmer_table& all_;
  kmer_size size_;
};

}  // namespace

std::string text_of(std::uint64_t kmer, kmer_size size) {
  std::string text(size.k, 'A');
  for (std::uint32_t i = size.k; i-- != 0; kmer >>= 2) text[i] = "ACGT"[kmer & 3];
  return text;
}

std::string canonical(std::string bases) {
  std::string other = reverse_complement(bases);
  return std::min(std::move(bases), std::move(other));
}

kmer_table count_sequentially(const read_set& reads, kmer_size size) {
  kmer_table all;
  std::vector<std::uint32_t> bases;
  for (std::size_t r = 0; r < reads.size(); ++r) {
    const std::uint32_t* const read = reads.of(r);
    const std::uint32_t n = read[0];
    bases.clear();
    for (std::uint32_t i = 0; i < n; ++i) bases.push_back(read[1 + i / 16] >> 2 * (i % 16) & 3);
    std::uint64_t x = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      x = size.append(x, bases[i]);
      if (i + 1 < size.k) continue;
      extensions beside;
      if (i + 1 > size.k) beside.bits |= extensions::left(bases[i - size.k]).bits;
      if (i + 1 < n) beside.bits |= extensions::right(bases[i + 1]).bits;
      const canonical_kmer c(size, x);
      kmer_seen& seen = all[c.kmer];
      ++seen.count;
      seen.beside.bits |= c.seen_from(beside).bits;
    }
  }
  return all;
}

std::vector<std::string> contigs_sequentially(const kmer_table& kmers, kmer_size size) {
  const unique_kmers graph(kmers, size);
  std::unordered_set<std::uint64_t> done;
  std::vector<std::string> all;
  for (const auto& [kmer, seen] : kmers) {
    on_path at{}, next{};
    if (!graph.find(kmer, at) || done.contains(kmer)) continue;
    bool circle = false;
    while (!circle && graph.left_of(at, next)) {
      at = next;
      circle = at.kmer == kmer;
    }
    std::string bases = text_of(at.kmer, size);
    const std::uint64_t first = at.kmer;
    for (;;) {
      done.insert(canonical_kmer(size, at.kmer).kmer);
      if (!graph.right_of(at, next) || next.kmer == first) break;
      bases += "ACGT"[at.beside.right_base()];
      at = next;
    }
    if (!circle) all.push_back(canonical(std::move(bases)));
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// The k-mers at the ends of what reads cover: pieces of the genome in which each k-mer and the one
/// after it are in one read.
static std::unordered_set<std::uint64_t> ends_of_cover(const sequences& genome,
                                                       const read_set& reads, kmer_size size) {
  std::vector<read_place> places = reads.places;
  std::sort(places.begin(), places.end(), [](const read_place& a, const read_place& b) {
    return a.sequence != b.sequence ? a.sequence < b.sequence : a.first < b.first;
  });
  std::unordered_set<std::uint64_t> ends;
  const auto add = [&](std::uint32_t sequence, std::uint64_t at) {
    ends.insert(canonical_kmer(size, kmer_of(genome[sequence].data() + at, size)).kmer);
  };
  for (std::size_t i = 0; i < places.size();) {
    const read_place& first = places[i];
    std::uint64_t end = first.first + first.bases;
    for (++i; i < places.size() && places[i].sequence == first.sequence &&
              places[i].first + size.k <= end;
         ++i)
      end = std::max<std::uint64_t>(end, places[i].first + places[i].bases);
    add(first.sequence, first.first);
    add(first.sequence, end - size.k);
  }
  return ends;
}

std::string not_in_genome(const std::vector<std::string>& contigs, const sequences& genome,
                          const read_set& reads, kmer_size size) {
  struct occurrence {
    std::uint64_t kmer, at;
    std::uint32_t sequence;
    bool operator<(const occurrence& o) const { return kmer < o.kmer; }
  };
  std::vector<occurrence> all;
  for (std::uint32_t s = 0; s < genome.size(); ++s) {
    std::uint64_t x = 0;
    for (std::uint64_t i = 0; i < genome[s].size(); ++i) {
      x = size.append(x, code_of(genome[s][i]));
      if (i + 1 >= size.k) all.push_back({x, i + 1 - size.k, s});
    }
  }
  std::sort(all.begin(), all.end());
  const auto is_part = [&](const std::string& bases) {
    const auto [begin, end] =
        std::equal_range(all.begin(), all.end(), occurrence{kmer_of(bases.data(), size), 0, 0});
    return std::any_of(begin, end, [&](const occurrence& o) {
      return genome[o.sequence].compare(o.at, bases.size(), bases) == 0;
    });
  };
  std::unordered_set<std::uint64_t> ends;
  for (const std::string& contig : contigs) {
    if (is_part(contig) || is_part(reverse_complement(contig))) continue;
    if (ends.empty()) ends = ends_of_cover(genome, reads, size);
    bool has_end = false;
    for (std::size_t i = 0; i + size.k <= contig.size() && !has_end; ++i)
      has_end = ends.contains(canonical_kmer(size, kmer_of(contig.data() + i, size)).kmer);
    if (!has_end)
      return fmt::format("a contig of {} bases, {}..., is not in the genome", contig.size(),
                         contig.substr(0, size.k));
  }
  return {};
}

}  // namespace grosr::genome
