#include "pieces.hpp"

#include <algorithm>
#include <unordered_map>

#include "sequential.hpp"

namespace grosr::genome {
namespace {

struct stretch {
  std::string bases;  // after its first k-mer
  bool ends_contig;
};

}  // namespace

std::vector<std::string> joined(std::vector<piece> pieces, kmer_size size) {
  std::sort(pieces.begin(), pieces.end(), [](const piece& a, const piece& b) {
    return a.first != b.first ? a.first < b.first : a.walked < b.walked;
  });
  std::unordered_map<std::uint64_t, stretch> stretches;
  std::vector<std::uint64_t> begins;
  for (const piece& p : pieces) {
    if (p.kind == piece_kind::begin) {
      begins.push_back(p.first);
      continue;
    }
    stretch& s = stretches[p.first];
    const std::uint32_t n = p.walked == 0 ? 0 : (p.walked - 1) % 32 + 1;
    for (std::uint32_t i = n; i-- != 0;) s.bases += "ACGT"[p.bases >> 2 * i & 3];
    s.ends_contig = p.kind == piece_kind::end;
  }
  std::vector<std::string> contigs;
  for (const std::uint64_t begin : begins) {
    std::string bases = text_of(begin, size);
    std::uint64_t at = begin;
    bool whole = false;
    // No contig has a stretch twice.
    for (std::size_t i = 0; i < stretches.size() && !whole; ++i) {
      const auto next = stretches.find(at);
      if (next == stretches.end()) break;
      bases += next->second.bases;
      for (const char b : next->second.bases) at = size.append(at, code_of(b));
      whole = next->second.ends_contig;
    }
    const canonical_kmer first(size, begin), last(size, at);
    const bool counts = first.kmer < last.kmer ||
                        (first.kmer == last.kmer && (bases.size() > size.k || !first.reversed));
    if (whole && counts) contigs.push_back(canonical(std::move(bases)));
  }
  std::sort(contigs.begin(), contigs.end());
  return contigs;
}

}  // namespace grosr::genome
