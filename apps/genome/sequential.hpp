// The same by one thread of the CPU, and what is checked.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "kmer.hpp"
#include "reads.hpp"

namespace grosr::genome {

/// By canonical k-mers.
using kmer_table = std::unordered_map<std::uint64_t, kmer_seen>;

kmer_table count_sequentially(const read_set& reads, kmer_size size);

/// The longest paths of k-mers that have one extension on each side; each once, as the lesser of
/// itself and its reverse complement, and in order. Circles are none.
std::vector<std::string> contigs_sequentially(const kmer_table& kmers, kmer_size size);

std::string text_of(std::uint64_t kmer, kmer_size size);
/// The lesser of a sequence and its reverse complement.
std::string canonical(std::string bases);

/// What is wrong with contigs: one that is no part of the genome or of its reverse complement;
/// empty: nothing. Those that have a k-mer at an end of what reads cover without a gap may go on
/// where the genome does not, and are not looked at.
std::string not_in_genome(const std::vector<std::string>& contigs, const sequences& genome,
                          const read_set& reads, kmer_size size);

}  // namespace grosr::genome
