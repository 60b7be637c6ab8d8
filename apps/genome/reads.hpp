// A genome, from a file or at random, and reads that are cut from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace grosr::genome {

/// Sequences of A, C, G and T.
using sequences = std::vector<std::string>;

sequences random_genome(std::uint64_t bases, std::uint64_t seed);

/// The sequences of a FASTA file. Letters that stand for several bases, such as N, end a sequence,
/// and another one begins. Throws error(bad_input) naming file and line where there is something
/// else, and where no sequence has `least` bases; those that have fewer are left out.
sequences read_fasta(const std::string& path, std::uint64_t least);

/// Where a read lies in a sequence.
struct read_place {
  std::uint32_t sequence;
  std::uint64_t first;
  std::uint32_t bases;
  bool reversed;
};

/// Reads of so many bases, or of a whole sequence where that is shorter: one at each end, and
/// others at random places, of either strand, until a base lies in `coverage` of them on average.
struct read_set {
  std::vector<read_place> places;
  /// Each read: how many bases, then 16 in a word, the first one lowest.
  std::vector<std::uint32_t> words;
  std::uint32_t stride = 0;  ///< words of a read

  read_set(const sequences& genome, std::uint32_t read_bases, double coverage, std::uint64_t seed);
  std::size_t size() const { return places.size(); }
  const std::uint32_t* of(std::size_t read) const { return words.data() + read * stride; }
  /// k-mers that they have, each as often as it comes.
  std::uint64_t kmers(std::uint32_t k) const;
};

/// 0 to 3 for A, C, G, T.
std::uint32_t code_of(char base);
std::string reverse_complement(const std::string& bases);

}  // namespace grosr::genome
