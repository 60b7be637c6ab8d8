// The de Bruijn graph of reads, on the ranks of a world, and its contigs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ranks/placement.hpp"
#include "sequential.hpp"

namespace grosr::genome {

using ranks::placement;

class assembly {
 public:
  /// Copies the reads to the ranks, as many to each. `capacity`: different k-mers. Throws
  /// grosr::error.
  assembly(const placement& p, const read_set& reads, kmer_size size, std::uint64_t capacity);
  ~assembly();

  /// Forgets all k-mers.
  void begin();
  /// Counts those of all reads.
  void count();
  /// Follows contigs. False: there was no room for what was found; it was made, try again.
  bool walk();

  kmer_table kmers() const;
  /// As contigs_sequentially().
  std::vector<std::string> contigs() const;
  std::vector<net::rank_stats> stats() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace grosr::genome
