// Pieces of contigs, as tasks leave them on ranks, and what the host makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kmer.hpp"

namespace grosr::genome {

/// What a piece is: bases of a stretch; the last ones of it, where its contig ends or another
/// stretch goes on from its last k-mer; or that a contig begins.
enum class piece_kind : std::uint32_t { bases, end, anchor, begin };
/// Up to 32 bases of a stretch, as a rank has them: of those after the first k-mer, the last ones
/// of the first `walked`, as many as walked - 1 mod 32 and one more.
struct piece {
  std::uint64_t first;  ///< k-mer of the stretch, as it is read
  std::uint64_t bases;  ///< the last one lowest
  std::uint32_t walked;
  piece_kind kind;
};

/// The contigs, as contigs_sequentially() has them. Each comes twice, from both of its ends.
std::vector<std::string> joined(std::vector<piece> pieces, kmer_size size);

}  // namespace grosr::genome
